//! Times of several things that take turns, and the table in which their ratios are shown.

use std::time::{Duration, Instant};

/// Median, and the place at a percentage, of some times.
pub(crate) fn at(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    at(values, 50)
}

/// Microseconds of one call.
pub(crate) fn time(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    micros(started.elapsed())
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Runs the things in turn, so many rounds, each round from another start. Per thing its times in
/// microseconds; the first round warms up and is not counted.
pub(crate) fn in_turn(rounds: usize, things: &mut [&mut dyn FnMut()]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::with_capacity(rounds); things.len()];
    for round in 0..=rounds {
        for step in 0..things.len() {
            let thing = (round + step) % things.len();
            let taken = time(&mut *things[thing]);
            if round > 0 {
                times[thing].push(taken);
            }
        }
    }
    times
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// A comparison: how much longer `theirs` took than `ours`, round by round.
    pub(crate) fn faster(&mut self, what: &str, ours: &[f64], theirs: &[f64], aim: &str) {
        self.ratio(what, theirs, ours, true, aim);
    }

    /// A comparison: how much longer `ours` took than the floor, round by round.
    pub(crate) fn cost(&mut self, what: &str, ours: &[f64], floor: &[f64], aim: &str) {
        self.ratio(what, ours, floor, false, aim);
    }

    fn ratio(&mut self, what: &str, over: &[f64], under: &[f64], ours_under: bool, aim: &str) {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(a, b)| a / b).collect();
        let spread = format!(
            "{:.2} / **{:.2}** / {:.2} x",
            at(&ratios, 0),
            median(&ratios),
            at(&ratios, 100)
        );
        let (ours, theirs) = if ours_under { (under, over) } else { (over, under) };
        let raw = format!("{} : {}", shown(median(ours)), shown(median(theirs)));
        self.row(what, &spread, &raw, aim);
    }

    /// Anything else.
    pub(crate) fn row(&mut self, what: &str, ratio: &str, raw: &str, aim: &str) {
        println!("{what}: {ratio}   {raw}   {aim}");
        self.rows.push([what.to_owned(), ratio.to_owned(), raw.to_owned(), aim.to_owned()]);
    }

    pub(crate) fn print(&self) {
        println!("\n| what | min / median / max | medians, ours : peer | aim |");
        println!("| --- | --- | --- | --- |");
        for [what, ratio, raw, aim] in &self.rows {
            println!("| {what} | {ratio} | {raw} | {aim} |");
        }
    }
}

/// A time for people.
pub(crate) fn shown(micros: f64) -> String {
    if micros >= 1e6 {
        format!("{:.2} s", micros / 1e6)
    } else if micros >= 1e3 {
        format!("{:.2} ms", micros / 1e3)
    } else if micros >= 10.0 {
        format!("{micros:.0} us")
    } else {
        format!("{micros:.2} us")
    }
}

pub(crate) fn mb_per_s(bytes: usize, micros: f64) -> String {
    format!("{:.0} MB/s", bytes as f64 / micros)
}
