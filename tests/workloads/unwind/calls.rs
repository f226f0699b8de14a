// SPDX-License-Identifier: BSD-2-Clause
// calls.rs: recursion, a closure that the standard library calls, and a thread.
use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn rust_leaf(turns: u64) -> u64 {
    let mut sum = 0;
    for i in 0..turns {
        sum = black_box(sum + i);
    }
    sum
}

#[inline(never)]
fn recurses(depth: u32) -> u64 {
    if depth == 0 {
        return rust_leaf(20_000);
    }
    black_box(recurses(depth - 1)) + 1
}

#[inline(never)]
fn compare_goods(a: &u64, b: &u64) -> std::cmp::Ordering {
    black_box(rust_leaf(200));
    a.cmp(b)
}

#[inline(never)]
fn sorts_goods() -> u64 {
    let mut goods: Vec<u64> = (0..100).map(|i| i * 7919 % 1009).collect();
    goods.sort_by(compare_goods);
    black_box(goods[0])
}

#[inline(never)]
fn works(end: Instant) -> u64 {
    let mut sum = 0;
    while Instant::now() < end {
        sum += recurses(10) + sorts_goods();
    }
    sum
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let other = std::thread::spawn(move || works(end));
    let sum = works(end) + other.join().unwrap();
    std::process::exit((sum == 0) as i32);
}
