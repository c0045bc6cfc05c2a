//! Parser of assertions, with Python's precedence.

use crate::ast::{
    AssertionExpr, AssertionExprKind, CompareOperator, Operator, Statement, StatementKind,
};
use crate::diagnostic::{Diagnostic, ScriptSpan};

type Result<T> = core::result::Result<T, Diagnostic>;

/// Maximum nesting of parentheses.
const DEPTH: usize = 32;

/// Operators by increasing precedence.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("|", Operator::Or)],
    &[("&", Operator::And)],
    &[("<<", Operator::Left), (">>", Operator::Right)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("//", Operator::Divide),
        ("/", Operator::Divide),
        ("%", Operator::Rest),
    ],
];

const COMPARISONS: [(&str, CompareOperator); 6] = [
    ("==", CompareOperator::Equal),
    ("!=", CompareOperator::Unequal),
    ("<=", CompareOperator::LessOrEqual),
    (">=", CompareOperator::GreaterOrEqual),
    ("<", CompareOperator::Less),
    (">", CompareOperator::Greater),
];

/// Parses the range `span` of a script.
///
/// # Errors
/// The first error, with its position.
pub(crate) fn parse(text: &str, span: ScriptSpan) -> Result<Vec<Statement>> {
    let mut reader = AssertionParser {
        text: &text[..span.end],
        start: span.start,
        at: span.start,
        end: span.start,
        depth: 0,
        blocks: 0,
    };
    let mut statements = Vec::new();
    loop {
        reader.skip_lines();
        if reader.rest().is_empty() {
            return Ok(statements);
        }
        statements.push(reader.statement()?);
        reader.end_of_statement()?;
    }
}

struct AssertionParser<'t> {
    text: &'t str,
    /// Where the code begins.
    start: usize,
    at: usize,
    /// End of the last token taken.
    end: usize,
    /// Open parentheses; within them, line ends are whitespace.
    depth: usize,
    /// Blocks within blocks.
    blocks: usize,
}

impl<'t> AssertionParser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips blanks; within parentheses also line ends, and everywhere those after a backslash.
    fn skip(&mut self) {
        let within = self.depth > 0;
        loop {
            let rest = self.rest();
            let blank = |c: char| c.is_whitespace() && (within || c != '\n');
            let trimmed = rest.trim_start_matches(blank);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("\\\n") {
                return;
            }
            self.at += "\\\n".len();
        }
    }

    fn skip_lines(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("\\\n") {
                self.at += "\\\n".len();
                continue;
            }
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.end = self.at;
        }
        found
    }

    fn word(&mut self) -> Option<&'t str> {
        self.skip();
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return None;
        }
        let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        Some(&rest[..length])
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.word() == Some(word) && self.take(word)
    }

    fn span(&self, start: usize) -> ScriptSpan {
        ScriptSpan { start, end: self.end.max(start) }
    }

    fn missing(&self, expected: &str) -> Diagnostic {
        let rest = self.rest();
        let length = rest.chars().next().filter(|&c| c != '\n').map_or(0, char::len_utf8);
        let span = ScriptSpan { start: self.at, end: self.at + length };
        let error = Diagnostic::new(self.text, span, "this assertion cannot be read");
        let error = error.expected(expected);
        if length > 0 { error.found(format!("`{}`", &rest[..length])) } else { error }
    }

    fn statement(&mut self) -> Result<Statement> {
        self.skip();
        let start = self.at;
        let kind = self.statement_kind()?;
        Ok(Statement { kind, span: self.span(start) })
    }

    fn end_of_statement(&mut self) -> Result<()> {
        self.skip();
        if self.rest().is_empty() || self.rest().starts_with(['\n', ';', '#']) {
            return Ok(());
        }
        // A block has taken the end of its last line.
        if self.text[self.start..self.at].trim_end_matches([' ', '\t']).ends_with('\n') {
            return Ok(());
        }
        Err(self.missing("an operator or the end of the line"))
    }

    /// The indentation of what is next; `None` on the first line of the code, which follows `%{`.
    fn indentation(&self) -> Option<usize> {
        let before = &self.text[self.start..self.at];
        before.rfind('\n').map(|line| before.len() - line - 1)
    }

    /// Parses what follows `if`, as Python has it: branches on one line, or indented.
    fn branches(&mut self, at: Option<usize>) -> Result<StatementKind> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        while otherwise.is_none() {
            let condition = match branches.is_empty() || self.keyword("elif") {
                true => Some(self.expression()?),
                false => {
                    let _ = self.keyword("else");
                    None
                }
            };
            if !self.take(":") {
                return Err(self.missing("`:`"));
            }
            let (block, inner) = self.block(at)?;
            match condition {
                Some(condition) => branches.push((condition, block)),
                None => otherwise = Some(block),
            }
            let here = self.at;
            self.skip_lines();
            let belongs = match (at, inner) {
                (Some(at), _) => self.indentation() == Some(at),
                (None, Some(inner)) => self.indentation().is_some_and(|here| here < inner),
                (None, None) => self.indentation().is_some(),
            };
            if !belongs || !matches!(self.word(), Some("elif" | "else")) {
                self.at = here;
                break;
            }
        }
        Ok(StatementKind::If(branches, otherwise.unwrap_or_default()))
    }

    /// Parses the statements after a colon; also returns their indentation, if they are on lines of their own.
    fn block(&mut self, at: Option<usize>) -> Result<(Vec<Statement>, Option<usize>)> {
        const EXPECTED: &str = "a statement, or an indented line";
        if self.blocks == DEPTH {
            return Err(self.missing("fewer blocks within blocks"));
        }
        self.blocks += 1;
        self.skip();
        let own_lines = self.rest().is_empty() || self.rest().starts_with(['\n', '#']);
        let mut statements = Vec::new();
        let mut inner = None;
        if own_lines {
            self.skip_lines();
            inner = self.indentation().filter(|&inner| inner > at.unwrap_or(0));
            if self.rest().is_empty() || inner.is_none() {
                return Err(self.missing(EXPECTED));
            }
        }
        loop {
            statements.push(self.statement()?);
            self.end_of_statement()?;
            let here = self.at;
            if own_lines {
                self.skip_lines();
                if self.rest().is_empty() || self.indentation() < inner {
                    self.at = here;
                    break;
                }
            } else if !self.take(";")
                || self.rest().trim_start_matches([' ', '\t']).starts_with('\n')
            {
                break;
            }
        }
        self.blocks -= 1;
        Ok((statements, inner))
    }

    fn statement_kind(&mut self) -> Result<StatementKind> {
        const EXPECTED: &str = "`assert condition, message` or `name = value`";
        let at = self.indentation();
        if self.keyword("if") {
            return self.branches(at);
        }
        if self.keyword("assert") {
            let condition = self.expression()?;
            let message = if self.take(",") { Some(self.expression()?) } else { None };
            return Ok(StatementKind::Assert(condition, message));
        }
        if self.keyword("pass") {
            return Ok(StatementKind::Nothing);
        }
        let Some(name) = self.word() else { return Err(self.missing(EXPECTED)) };
        if name == "print" {
            let _ = self.take(name);
            return Ok(StatementKind::Print(self.expression()?));
        }
        let _ = self.take(name);
        self.skip();
        let rest = self.rest();
        if rest.starts_with('=') && !rest.starts_with("==") {
            let _ = self.take("=");
            return Ok(StatementKind::Assign(name.to_owned(), None, self.expression()?));
        }
        for &(sign, operator) in LEVELS.iter().copied().flatten() {
            if rest.strip_prefix(sign).is_some_and(|behind| behind.starts_with('=')) {
                let _ = self.take(sign) && self.take("=");
                return Ok(StatementKind::Assign(
                    name.to_owned(),
                    Some(operator),
                    self.expression()?,
                ));
            }
        }
        Err(self.missing(EXPECTED))
    }

    fn node(&self, start: usize, kind: AssertionExprKind) -> AssertionExpr {
        AssertionExpr { kind, span: self.span(start) }
    }

    fn expression(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        let mut left = self.conjunction()?;
        while self.keyword("or") {
            let right = self.conjunction()?;
            left = self.node(start, AssertionExprKind::Or(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        let mut left = self.negation()?;
        while self.keyword("and") {
            let right = self.negation()?;
            left = self.node(start, AssertionExprKind::And(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        // Iterative, so that a long sequence of them cannot overflow the stack.
        let mut count = 0;
        while self.keyword("not") {
            count += 1;
        }
        let mut inner = self.comparison()?;
        for _ in 0..count {
            inner = self.node(start, AssertionExprKind::Not(Box::new(inner)));
        }
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        let first = self.binary(0)?;
        let mut others = Vec::new();
        while let Some(&(_, comparison)) = COMPARISONS.iter().find(|(sign, _)| self.take(sign)) {
            others.push((comparison, self.binary(0)?));
        }
        if others.is_empty() {
            return Ok(first);
        }
        Ok(self.node(start, AssertionExprKind::Compare(Box::new(first), others)))
    }

    fn binary(&mut self, level: usize) -> Result<AssertionExpr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        self.skip();
        let start = self.at;
        let mut left = self.binary(level + 1)?;
        while let Some(&(_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.binary(level + 1)?;
            left = self
                .node(start, AssertionExprKind::Binary(Box::new(left), operator, Box::new(right)));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        let mut count = 0;
        while self.take("-") {
            count += 1;
        }
        let mut inner = self.atom()?;
        for _ in 0..count {
            inner = self.node(start, AssertionExprKind::Negative(Box::new(inner)));
        }
        Ok(inner)
    }

    fn atom(&mut self) -> Result<AssertionExpr> {
        self.skip();
        let start = self.at;
        if self.take("(") {
            let mut inside = self.inside()?;
            if inside.1 || inside.0.len() != 1 {
                return Ok(self.node(start, AssertionExprKind::Tuple(inside.0)));
            }
            return Ok(inside.0.remove(0));
        }
        for quote in ["'", "\""] {
            if self.take(quote) {
                let rest = self.rest();
                let Some(length) = rest.find([quote.as_bytes()[0] as char, '\n']) else {
                    return Err(self.missing("a closing quote"));
                };
                let text = rest[..length].to_owned();
                self.at += length;
                if !self.take(quote) {
                    return Err(self.missing("a closing quote"));
                }
                return Ok(self.node(start, AssertionExprKind::Text(text)));
            }
        }
        if let Some(word) = self.word() {
            let _ = self.take(word);
            if !self.rest().starts_with('(') {
                return Ok(self.node(start, AssertionExprKind::Name(word.to_owned())));
            }
            let _ = self.take("(");
            let (args, _) = self.inside()?;
            return Ok(self.node(start, AssertionExprKind::Function(word.to_owned(), args)));
        }
        self.number(start)
    }

    /// Parses values up to the closing parenthesis; returns whether a comma follows the last.
    fn inside(&mut self) -> Result<(Vec<AssertionExpr>, bool)> {
        if self.depth == DEPTH {
            return Err(self.missing("fewer brackets within brackets"));
        }
        self.depth += 1;
        let mut values = Vec::new();
        let mut comma = true;
        while !self.take(")") {
            if !comma {
                return Err(self.missing("`,` or `)`"));
            }
            values.push(self.expression()?);
            comma = self.take(",");
        }
        self.depth -= 1;
        Ok((values, comma))
    }

    fn number(&mut self, start: usize) -> Result<AssertionExpr> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let digits = &rest[..length];
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let fraction = rest[length..].starts_with('.');
        match value {
            Ok(value) if !fraction => {
                let _ = self.take(digits);
                Ok(self.node(start, AssertionExprKind::Int(value)))
            }
            _ => Err(self.missing("a whole number, a name, a text or `(`")),
        }
    }
}
