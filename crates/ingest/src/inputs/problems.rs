//! The problems of a file: all are counted, the first ones are kept.

/// Most problems kept of a file.
const MOST: usize = 20;

/// The problems of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    /// Number of problems.
    pub count: u64,
    /// The first of them, with their positions in the file.
    pub first: Vec<String>,
}

impl Problems {
    pub(super) fn push(&mut self, problem: &impl ToString) {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(problem.to_string());
        }
    }
}
