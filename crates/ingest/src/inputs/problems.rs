//! What was wrong with a file: all counted, the first ones told.

/// Problems that are kept of a file.
const MOST: usize = 20;

/// What was wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    /// How many there were.
    pub count: u64,
    /// The first of them, with their places in the file.
    pub first: Vec<String>,
}

impl Problems {
    pub(super) fn tell(&mut self, problem: &impl ToString) {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(problem.to_string());
        }
    }
}
