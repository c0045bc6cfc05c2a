//! A condition over the axes: `host.a.cc == cubic and (path.delay >= 10ms or not duration < 5s)`.

use core::cmp::Ordering;

use super::super::nearest::{did_you_mean, one_of};
use super::super::source::{Fault, Place};
use super::axis::Axis;
use crate::units_text::Measure;

/// A condition.
#[derive(Debug)]
pub(super) enum Only {
    Either(Box<Only>, Box<Only>),
    Both(Box<Only>, Box<Only>),
    Not(Box<Only>),
    Compare(Operand, Comparison, Operand),
}

/// One side of a comparison.
#[derive(Debug)]
pub(super) enum Operand {
    /// Key number so many of axis number so many.
    Key(usize, usize),
    /// As it stands.
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Is,
    IsNot,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Only {
    /// Reads a condition that stands at `place`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str, place: Place, axes: &[Axis]) -> Result<Self, Fault> {
        let tokens = tokens(text).map_err(|message| Fault::new(place, message))?;
        let mut parser = Parser { tokens: &tokens, at: 0, axes, place };
        let whole = parser.either()?;
        match parser.peek() {
            None => Ok(whole),
            Some(token) => Err(parser.wrong(format!("`{token}` stands where nothing should"))),
        }
    }

    /// Does `point` meet it?
    pub(super) fn holds(&self, axes: &[Axis], point: &[usize]) -> bool {
        match self {
            Self::Either(a, b) => a.holds(axes, point) || b.holds(axes, point),
            Self::Both(a, b) => a.holds(axes, point) && b.holds(axes, point),
            Self::Not(inner) => !inner.holds(axes, point),
            Self::Compare(a, how, b) => how.holds(&a.text(axes, point), &b.text(axes, point)),
        }
    }
}

impl Operand {
    fn text(&self, axes: &[Axis], point: &[usize]) -> String {
        match self {
            Self::Key(axis, key) => axes[*axis].labels(point[*axis]).swap_remove(*key),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Comparison {
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
    axes: &'t [Axis],
    place: Place,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn wrong(&self, message: impl Into<String>) -> Fault {
        let expected = "comparisons joined by `and`, `or`, `not` and parentheses";
        Fault::new(self.place, message).expected(expected)
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == Some(word);
        self.at += usize::from(taken);
        taken
    }

    fn either(&mut self) -> Result<Only, Fault> {
        let mut whole = self.both()?;
        while self.take("or") {
            whole = Only::Either(Box::new(whole), Box::new(self.both()?));
        }
        Ok(whole)
    }

    fn both(&mut self) -> Result<Only, Fault> {
        let mut whole = self.single()?;
        while self.take("and") {
            whole = Only::Both(Box::new(whole), Box::new(self.single()?));
        }
        Ok(whole)
    }

    fn single(&mut self) -> Result<Only, Fault> {
        if self.take("not") {
            return Ok(Only::Not(Box::new(self.single()?)));
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

    fn comparison(&mut self) -> Result<Only, Fault> {
        let (left, a) = self.operand()?;
        let how = self.peek().and_then(Comparison::named);
        let Some(how) = how else {
            return Err(self.wrong(format!("no comparison after `{left}`")));
        };
        self.at += 1;
        let (right, b) = self.operand()?;
        if matches!((&a, &b), (Operand::Text(_), Operand::Text(_))) {
            let names: Vec<String> = self.axes.iter().flat_map(Axis::names).collect();
            let names = || names.iter().map(String::as_str);
            let fault =
                Fault::new(self.place, format!("neither `{left}` nor `{right}` is an axis"));
            let guess = did_you_mean(&left, names());
            return Err(fault.expected(one_of(names())).hint(guess));
        }
        let text = |operand: &Operand| match operand {
            Operand::Text(text) => Some(text.clone()),
            Operand::Key(axis, key) => Some(self.axes[*axis].labels(0).swap_remove(*key)),
        };
        let ordered = !matches!(how, Comparison::Is | Comparison::IsNot);
        if let (true, Some(a), Some(b)) = (ordered, text(&a), text(&b)) {
            let measures = Measure::read(&a).zip(Measure::read(&b));
            if measures.is_none_or(|(a, b)| a.quantity != b.quantity) {
                let message = format!("`{a}` and `{b}` have no order");
                return Err(self.wrong(message));
            }
        }
        Ok(Only::Compare(a, how, b))
    }

    fn operand(&mut self) -> Result<(String, Operand), Fault> {
        let Some(token) = self.peek().map(str::to_owned) else {
            return Err(self.wrong("the condition ends too early"));
        };
        if Comparison::named(&token).is_some() || ["(", ")", "and", "or", "not"].contains(&&*token)
        {
            return Err(self.wrong(format!("`{token}` stands where a key or a value should")));
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

/// Words, comparisons and parentheses.
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
