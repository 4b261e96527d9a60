//! The installed plugin with our daemon: what reaches the model behind a compaction, once for each.

use compactd_tests::harness::host::codex::{Call, Config, Kind, Responses, Step, wire};
use compactd_tests::harness::host::{Gate, codex};
use compactd_tests::harness::{Home, eventually};
use serde_json::{Value, json};

use super::rig::{Rig, prompt, texts};

#[test]
fn untrusted_hooks_do_nothing_and_trusted_ones_run() {
    let Some(codex) = codex() else { return };
    let steps = [Step::shell("ls").tokens(30_000), Step::text("Done.").tokens(9_000)];
    let api = Responses::start(steps.clone());
    let rig = Rig::installed(&codex, Home::new(), &api, &Config::default());
    let listed = rig.host.command(["plugin", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let plugin = &listed["installed"][0];
    assert_eq!(plugin["pluginId"], "compactd@compactd", "{listed}");
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"), "{listed}");
    let hooks = rig.host.hooks();
    assert_eq!(hooks.len(), 9, "{hooks:#?}");
    assert!(hooks.iter().all(|hook| hook["trustStatus"] == "untrusted"), "{hooks:#?}");
    let host = rig.host.clone().compacting_at(20_000);
    let run = host.exec(&prompt("Look around.")).good();
    assert_eq!(run.kinds(), [Kind::Turn, Kind::CompactLocal, Kind::Turn]);
    assert_eq!(texts(run.last()), [] as [u64; 0]);
    assert_eq!(rig.daemon().client.stats()["hooks"], json!({"text": 0, "silent": 0}));
    rig.host.trust();
    let hooks = rig.host.hooks();
    assert!(hooks.iter().all(|hook| hook["trustStatus"] == "trusted"), "{hooks:#?}");
    api.script(steps);
    let run = host.exec(&prompt("Look around.")).good();
    assert_eq!(texts(run.last()), [1]);
    let stats = rig.daemon().client.stats();
    // Start, prompt, before and after the compaction, and the end; tool calls stay in the shim.
    assert_eq!(stats["hooks"], json!({"text": 1, "silent": 5}), "{stats}");
}

#[test]
fn every_compaction_of_a_thread_once_whenever_it_comes() {
    let Some(codex) = codex() else { return };
    // Summaries by the host, and sealed ones by the API.
    for provider in ["mock", "OpenAI"] {
        let steps = [
            Step::shell("ls").tokens(30_000),
            Step::shell("pwd").tokens(9_000),
            Step::text("Done.").tokens(30_000),
        ];
        let api = Responses::start(steps);
        let config = Config::default().provider(provider);
        let rig = Rig::new(&codex, Home::new(), &api, &config);
        let host = rig.host.clone().compacting_at(20_000);
        // In the middle of a turn: at once.
        let run = host.exec(&prompt("Look around.")).good();
        let thread = &run.thread;
        let got: Vec<Vec<u64>> = run.turns().into_iter().map(texts).collect();
        assert_eq!(got, [vec![], vec![1], vec![1]], "{}", wire::outlines(&run.requests));
        rig.has_delivered(thread, 1);
        // A resume that compacts before its turn: the session starts twice in it.
        api.script([Step::text("More.").tokens(9_000)]);
        let run = host.resume(thread, &prompt("Go on.")).good();
        assert_eq!(texts(run.last()), [2], "{}", wire::outlines(&run.requests));
        rig.has_delivered(thread, 2);
        // A person's: when the next turn begins.
        let mut server = rig.host.app_server();
        server.resume(thread);
        server.compact(thread);
        assert_eq!(rig.known(thread), (3, json!({"compaction": 3, "state": "pending"})));
        for said in ["And on.", "And on again."] {
            api.script([Step::text(said)]);
            server.turn(thread, &prompt("Go on."));
            assert_eq!(texts(&api.last_turn()), [3], "{}", wire::outline(&api.last_turn().body));
        }
        rig.has_delivered(thread, 3);
        // Two without a turn between.
        server.compact(thread);
        server.compact(thread);
        api.script([Step::text("And on.")]);
        server.turn(thread, &prompt("Go on."));
        assert_eq!(texts(&api.last_turn()), [4, 5]);
        rig.has_delivered(thread, 5);
        server.finish();
        // Resumed without a compaction: what was said stands in the history, and is not said again.
        api.script([Step::text("And on.")]);
        let run = rig.host.resume(thread, &prompt("Go on.")).good();
        assert_eq!(texts(run.last()), [4, 5]);
    }
}

#[test]
fn a_sub_agent_that_compacts_in_the_middle_of_a_turn() {
    let Some(codex) = codex() else { return };
    let counted = Gate::new();
    let steps = [
        Step::calls([Call::spawn(&prompt("Count the files."))]),
        Step::text("Counted.").gate(&counted),
        Step::shell("ls").tokens(30_000).for_agent(),
        Step::shell("pwd").tokens(9_000).for_agent(),
        Step::shell("id").tokens(30_000).for_agent(),
        Step::shell("date").tokens(9_000).for_agent(),
        Step::text("None.").tokens(9_000).for_agent(),
    ];
    let api = Responses::start(steps);
    let rig = Rig::new(&codex, Home::new(), &api, &Config::default());
    let exec = rig.host.clone().compacting_at(20_000).start("Let somebody count.");
    let requests = || {
        let turns = api.of_kind(Kind::Turn).into_iter();
        turns.filter(|request| request.is_agent).collect::<Vec<_>>()
    };
    eventually("the sub-agent's last request", || (requests().len() == 5).then_some(()));
    counted.open();
    let run = exec.finish().good();
    let got: Vec<Vec<u64>> = requests().iter().map(|request| texts(request)).collect();
    // Between a compaction and the next call there is no hook that reaches it.
    let expected = [vec![], vec![], vec![1], vec![], vec![2]];
    assert_eq!(got, expected, "{}", wire::outlines(&run.requests));
    for request in run.turns() {
        assert_eq!(texts(request), [] as [u64; 0]);
    }
    rig.has_delivered(&requests()[0].thread, 2);
    assert_eq!(rig.known(&run.thread), (0, Value::Null));
}

#[test]
fn an_attempt_that_fails_uses_up_no_number() {
    let Some(codex) = codex() else { return };
    let api = Responses::start([Step::text("Seen.")]);
    let rig = Rig::new(&codex, Home::new(), &api, &Config::default());
    let thread = rig.host.exec(&prompt("Look around.")).good().thread;
    let mut server = rig.host.app_server();
    server.resume(&thread);
    api.script([Step::status(400, "no summary today").for_compaction(), Step::text("And on.")]);
    server.call("thread/compact/start", &json!({"threadId": thread}));
    let turn = server.turn_completed(&thread);
    assert_ne!(turn["status"], "completed", "{turn}");
    assert_eq!(rig.known(&thread), (0, json!({"compaction": 1, "state": "kept"})));
    server.turn(&thread, &prompt("Go on."));
    assert_eq!(texts(&api.last_turn()), [] as [u64; 0]);
    assert_eq!(rig.known(&thread), (0, Value::Null));
    server.compact(&thread);
    api.script([Step::text("And on.")]);
    server.turn(&thread, &prompt("Go on."));
    assert_eq!(texts(&api.last_turn()), [1]);
    rig.has_delivered(&thread, 1);
    server.finish();
}

#[test]
fn a_daemon_that_dies_while_the_host_compacts() {
    let Some(codex) = codex() else { return };
    let asked = Gate::new();
    let steps = [
        Step::shell("ls").tokens(30_000),
        Step::text("Short.").for_compaction().gate(&asked),
        Step::shell("pwd").tokens(9_000),
        Step::text("Done.").tokens(9_000),
    ];
    let api = Responses::start(steps);
    let mut rig = Rig::new(&codex, Home::new(), &api, &Config::default());
    let exec = rig.host.clone().compacting_at(20_000).start(&prompt("Look around."));
    eventually("the request for a summary", || {
        (api.of_kind(Kind::CompactLocal).len() == 1).then_some(())
    });
    rig.restart();
    asked.open();
    let run = exec.finish().good();
    let got: Vec<Vec<u64>> = run.turns().into_iter().map(texts).collect();
    assert_eq!(got, [vec![], vec![1], vec![1]], "{}", wire::outlines(&run.requests));
    rig.has_delivered(&run.thread, 1);
}
