// SPDX-License-Identifier: Apache-2.0

//! Reads lines with a pattern and a key, separated by a tab. Writes each line again with the verdict
//! of the crate `glob`: match, no, or invalid.

use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let mut output = io::BufWriter::new(io::stdout().lock());

    for line in io::stdin().lock().lines() {
        let line = line?;
        let (pattern, key) = line.split_once('\t').expect("PATTERN<tab>KEY was expected");
        let verdict = match glob::Pattern::new(pattern) {
            Ok(pattern) if pattern.matches(key) => "match",
            Ok(_) => "no",
            Err(_) => "invalid",
        };
        writeln!(output, "{pattern}\t{key}\t{verdict}")?;
    }
    output.flush()
}
