//! Conditions over the axes: `host.a.cc == cubic and (path.delay >= 10ms or not duration < 5s)`.

use core::cmp::Ordering;

use super::super::nearest::{did_you_mean, one_of};
use super::super::source::{SpannedError, TextSpan};
use super::axis::SweepAxis;
use crate::units_text::Measure;

/// A condition on the values of the axes.
#[derive(Debug)]
pub(super) enum Condition {
    Either(Box<Condition>, Box<Condition>),
    Both(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Compare(Operand, ComparisonOp, Operand),
}

/// One side of a comparison.
#[derive(Debug)]
pub(super) enum Operand {
    /// A key of an axis: axis index, key index.
    Key(usize, usize),
    /// A literal.
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparisonOp {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Condition {
    /// Parses a condition at `place`.
    ///
    /// # Errors
    /// The condition is malformed or names no axis.
    pub(super) fn parse(
        text: &str,
        span: TextSpan,
        axes: &[SweepAxis],
    ) -> Result<Self, SpannedError> {
        let tokens = tokens(text).map_err(|message| SpannedError::new(span, message))?;
        let mut parser = Parser { tokens: &tokens, at: 0, axes, place: span };
        let whole = parser.either()?;
        match parser.peek() {
            None => Ok(whole),
            Some(token) => Err(parser.wrong(format!("unexpected `{token}`"))),
        }
    }

    /// Returns whether `point` meets the condition.
    pub(super) fn holds(&self, axes: &[SweepAxis], point: &[usize]) -> bool {
        match self {
            Self::Either(a, b) => a.holds(axes, point) || b.holds(axes, point),
            Self::Both(a, b) => a.holds(axes, point) && b.holds(axes, point),
            Self::Not(inner) => !inner.holds(axes, point),
            Self::Compare(a, how, b) => how.holds(&a.text(axes, point), &b.text(axes, point)),
        }
    }
}

impl Operand {
    fn text(&self, axes: &[SweepAxis], point: &[usize]) -> String {
        match self {
            Self::Key(axis, key) => axes[*axis].labels(point[*axis]).swap_remove(*key),
            Self::Text(text) => text.clone(),
        }
    }
}

impl ComparisonOp {
    fn holds(self, a: &str, b: &str) -> bool {
        let measures = Measure::read(a).zip(Measure::read(b));
        let order = match measures.filter(|(a, b)| a.quantity == b.quantity) {
            Some((a, b)) => Some(a.steps.cmp(&b.steps)),
            None if a == b => Some(Ordering::Equal),
            None => None,
        };
        match self {
            Self::Is => order == Some(Ordering::Equal),
            Self::IsNot => order != Some(Ordering::Equal),
            Self::Below => order == Some(Ordering::Less),
            Self::AtMost => order.is_some_and(Ordering::is_le),
            Self::Above => order == Some(Ordering::Greater),
            Self::AtLeast => order.is_some_and(Ordering::is_ge),
        }
    }

    fn named(token: &str) -> Option<Self> {
        Some(match token {
            "==" | "=" => Self::Is,
            "!=" => Self::IsNot,
            "<" => Self::Below,
            "<=" => Self::AtMost,
            ">" => Self::Above,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }
}

struct Parser<'t> {
    tokens: &'t [String],
    at: usize,
    axes: &'t [SweepAxis],
    place: TextSpan,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn wrong(&self, message: impl Into<String>) -> SpannedError {
        let expected = "comparisons joined by `and`, `or`, `not` and parentheses";
        SpannedError::new(self.place, message).expected(expected)
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == Some(word);
        self.at += usize::from(taken);
        taken
    }

    fn either(&mut self) -> Result<Condition, SpannedError> {
        let mut whole = self.both()?;
        while self.take("or") {
            whole = Condition::Either(Box::new(whole), Box::new(self.both()?));
        }
        Ok(whole)
    }

    fn both(&mut self) -> Result<Condition, SpannedError> {
        let mut whole = self.single()?;
        while self.take("and") {
            whole = Condition::Both(Box::new(whole), Box::new(self.single()?));
        }
        Ok(whole)
    }

    fn single(&mut self) -> Result<Condition, SpannedError> {
        if self.take("not") {
            return Ok(Condition::Not(Box::new(self.single()?)));
        }
        if self.take("(") {
            let inner = self.either()?;
            if !self.take(")") {
                return Err(self.wrong("a parenthesis is not closed"));
            }
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Condition, SpannedError> {
        let (left, a) = self.operand()?;
        let how = self.peek().and_then(ComparisonOp::named);
        let Some(how) = how else {
            return Err(self.wrong(format!("no comparison after `{left}`")));
        };
        self.at += 1;
        let (right, b) = self.operand()?;
        if matches!((&a, &b), (Operand::Text(_), Operand::Text(_))) {
            let names: Vec<String> = self.axes.iter().flat_map(SweepAxis::names).collect();
            let names = || names.iter().map(String::as_str);
            let fault =
                SpannedError::new(self.place, format!("neither `{left}` nor `{right}` is an axis"));
            let guess = did_you_mean(&left, names());
            return Err(fault.expected(one_of(names())).hint(guess));
        }
        let text = |operand: &Operand| match operand {
            Operand::Text(text) => Some(text.clone()),
            Operand::Key(axis, key) => Some(self.axes[*axis].labels(0).swap_remove(*key)),
        };
        let ordered = !matches!(how, ComparisonOp::Is | ComparisonOp::IsNot);
        if let (true, Some(a), Some(b)) = (ordered, text(&a), text(&b)) {
            let measures = Measure::read(&a).zip(Measure::read(&b));
            if measures.is_none_or(|(a, b)| a.quantity != b.quantity) {
                let message = format!("`{a}` and `{b}` have no order");
                return Err(self.wrong(message));
            }
        }
        Ok(Condition::Compare(a, how, b))
    }

    fn operand(&mut self) -> Result<(String, Operand), SpannedError> {
        let Some(token) = self.peek().map(str::to_owned) else {
            return Err(self.wrong("the condition ends too early"));
        };
        if ComparisonOp::named(&token).is_some()
            || ["(", ")", "and", "or", "not"].contains(&&*token)
        {
            return Err(self.wrong(format!("`{token}` is in the place of a key or a value")));
        }
        self.at += 1;
        let quoted = token.starts_with(['"', '\'']);
        let bare = if quoted { token[1..token.len() - 1].to_owned() } else { token.clone() };
        let key = self
            .axes
            .iter()
            .enumerate()
            .find_map(|(number, axis)| axis.key(&bare).map(|key| Operand::Key(number, key)));
        let operand = key.filter(|_| !quoted).unwrap_or(Operand::Text(bare));
        Ok((token, operand))
    }
}

/// Splits the text into words, comparison operators and parentheses.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '(' | ')' => 1,
            '"' | '\'' => match rest[1..].find(first) {
                Some(end) => end + 2,
                None => return Err(format!("a quote is not closed: {rest}")),
            },
            '=' | '!' | '<' | '>' => 1 + usize::from(rest[1..].starts_with('=')),
            _ => {
                rest.find(|c: char| c.is_whitespace() || "()=!<>".contains(c)).unwrap_or(rest.len())
            }
        };
        found.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    Ok(found)
}
