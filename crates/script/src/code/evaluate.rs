//! Evaluates assertions with the values of a run.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::ast::{
    AssertionExpr, AssertionExprKind, CompareOperator, Operator, Statement, StatementKind,
};
use crate::diagnostic::ScriptSpan;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AssertionValue {
    Int(i64),
    Text(String),
    Tuple(Vec<AssertionValue>),
}

impl fmt::Display for AssertionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Text(text) => f.write_str(text),
            Self::Tuple(values) => {
                let values: Vec<_> = values.iter().map(Self::to_string).collect();
                write!(f, "({})", values.join(", "))
            }
        }
    }
}

/// Error of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// The condition of an `assert` is false.
    False {
        /// The condition.
        span: ScriptSpan,
        /// The names in it with their values: `tcpi_snd_cwnd = 7`.
        values: String,
        /// The message of the script.
        message: Option<String>,
    },
    /// An unknown name.
    Unknown {
        /// The name.
        span: ScriptSpan,
        name: String,
    },
    /// An operation that its values do not support.
    InvalidOperation {
        /// The operation.
        span: ScriptSpan,
        why: &'static str,
    },
}

/// Variables of a script.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, AssertionValue>,
    /// Lines printed and not yet taken.
    pub(crate) printed: Vec<String>,
}

type Result<T> = core::result::Result<T, EvaluationError>;

/// Runs statements; `known` returns the values of names that the run defines.
pub(crate) fn run(
    statements: &[Statement],
    environment: &mut Environment,
    known: &dyn Fn(&str) -> Option<i64>,
) -> Result<()> {
    for statement in statements {
        let look = Evaluator { variables: &environment.variables, known };
        match &statement.kind {
            StatementKind::Nothing => {}
            StatementKind::If(branches, otherwise) => {
                let mut chosen = otherwise;
                for (condition, then) in branches {
                    if truth(&look.value(condition)?) {
                        chosen = then;
                        break;
                    }
                }
                run(chosen, environment, known)?;
            }
            StatementKind::Print(value) => {
                let text = match look.value(value)? {
                    AssertionValue::Tuple(values) => {
                        values.iter().map(AssertionValue::to_string).collect::<Vec<_>>().join(" ")
                    }
                    value => value.to_string(),
                };
                environment.printed.push(text);
            }
            StatementKind::Assert(condition, message) => {
                if !truth(&look.value(condition)?) {
                    let mut names = Vec::new();
                    look.names(condition, &mut names);
                    let message = match message {
                        Some(message) => Some(look.value(message)?.to_string()),
                        None => None,
                    };
                    return Err(EvaluationError::False {
                        span: condition.span,
                        values: names.join(", "),
                        message,
                    });
                }
            }
            StatementKind::Assign(name, operator, value) => {
                let value = look.value(value)?;
                let value = match operator {
                    None => value,
                    Some(operator) => {
                        let before = look.name(name, statement.span)?;
                        calculate(&before, *operator, &value, statement.span)?
                    }
                };
                environment.variables.insert(name.clone(), value);
            }
        }
    }
    Ok(())
}

struct Evaluator<'a> {
    variables: &'a BTreeMap<String, AssertionValue>,
    known: &'a dyn Fn(&str) -> Option<i64>,
}

impl Evaluator<'_> {
    fn name(&self, name: &str, span: ScriptSpan) -> Result<AssertionValue> {
        let constant = match name {
            "True" => Some(1),
            "False" => Some(0),
            _ => None,
        };
        self.variables
            .get(name)
            .cloned()
            .or_else(|| constant.or_else(|| (self.known)(name)).map(AssertionValue::Int))
            .ok_or_else(|| EvaluationError::Unknown { span, name: name.to_owned() })
    }

    fn value(&self, node: &AssertionExpr) -> Result<AssertionValue> {
        let senseless = |why| EvaluationError::InvalidOperation { span: node.span, why };
        Ok(match &node.kind {
            AssertionExprKind::Int(n) => AssertionValue::Int(*n),
            AssertionExprKind::Text(text) => AssertionValue::Text(text.clone()),
            AssertionExprKind::Name(name) => self.name(name, node.span)?,
            AssertionExprKind::Negative(inner) => match self.value(inner)? {
                AssertionValue::Int(n) => AssertionValue::Int(
                    n.checked_neg().ok_or(senseless("this number is too large"))?,
                ),
                _ => return Err(senseless("only a number has a negative")),
            },
            AssertionExprKind::Not(inner) => {
                AssertionValue::Int(i64::from(!truth(&self.value(inner)?)))
            }
            AssertionExprKind::And(left, right) => {
                let left = self.value(left)?;
                if truth(&left) { self.value(right)? } else { left }
            }
            AssertionExprKind::Or(left, right) => {
                let left = self.value(left)?;
                if truth(&left) { left } else { self.value(right)? }
            }
            AssertionExprKind::Binary(left, operator, right) => {
                calculate(&self.value(left)?, *operator, &self.value(right)?, node.span)?
            }
            AssertionExprKind::Compare(first, others) => {
                let mut left = self.value(first)?;
                let mut holds = true;
                for (comparison, right) in others {
                    let right = self.value(right)?;
                    holds &= compare(&left, *comparison, &right, node.span)?;
                    left = right;
                }
                AssertionValue::Int(i64::from(holds))
            }
            AssertionExprKind::Tuple(values) => AssertionValue::Tuple(
                values.iter().map(|value| self.value(value)).collect::<Result<_>>()?,
            ),
            AssertionExprKind::Function(name, args) => {
                let args: Vec<_> =
                    args.iter().map(|value| self.value(value)).collect::<Result<_>>()?;
                let numbers: Option<Vec<i64>> = args
                    .iter()
                    .map(|value| if let AssertionValue::Int(n) = value { Some(*n) } else { None })
                    .collect();
                let result = match (name.as_str(), numbers.as_deref()) {
                    ("abs", Some(&[n])) => n.checked_abs(),
                    ("int", Some(&[n])) => Some(n),
                    ("min", Some(numbers)) => numbers.iter().copied().min(),
                    ("max", Some(numbers)) => numbers.iter().copied().max(),
                    ("str", Some(&[n])) => return Ok(AssertionValue::Text(n.to_string())),
                    ("abs" | "int" | "min" | "max" | "str", _) => None,
                    _ => {
                        return Err(EvaluationError::Unknown {
                            span: node.span,
                            name: name.clone(),
                        });
                    }
                };
                AssertionValue::Int(
                    result.ok_or(senseless("these values do not fit the function"))?,
                )
            }
        })
    }

    /// Collects the names in a condition, with their values.
    fn names(&self, node: &AssertionExpr, found: &mut Vec<String>) {
        match &node.kind {
            AssertionExprKind::Int(_) | AssertionExprKind::Text(_) => {}
            AssertionExprKind::Name(name) => {
                if let Ok(value) = self.name(name, node.span) {
                    let text = format!("{name} = {value}");
                    if !found.contains(&text) && !name.starts_with("TCP_CA_") {
                        found.push(text);
                    }
                }
            }
            AssertionExprKind::Negative(inner) | AssertionExprKind::Not(inner) => {
                self.names(inner, found);
            }
            AssertionExprKind::Binary(left, _, right)
            | AssertionExprKind::And(left, right)
            | AssertionExprKind::Or(left, right) => {
                self.names(left, found);
                self.names(right, found);
            }
            AssertionExprKind::Compare(first, others) => {
                self.names(first, found);
                others.iter().for_each(|(_, node)| self.names(node, found));
            }
            AssertionExprKind::Function(_, nodes) | AssertionExprKind::Tuple(nodes) => {
                nodes.iter().for_each(|node| self.names(node, found));
            }
        }
    }
}

fn truth(value: &AssertionValue) -> bool {
    match value {
        AssertionValue::Int(n) => *n != 0,
        AssertionValue::Text(text) => !text.is_empty(),
        AssertionValue::Tuple(values) => !values.is_empty(),
    }
}

/// The order of two values of one type; tuples compare by their first members that differ.
fn order(left: &AssertionValue, right: &AssertionValue) -> Option<Ordering> {
    match (left, right) {
        (AssertionValue::Int(left), AssertionValue::Int(right)) => Some(left.cmp(right)),
        (AssertionValue::Text(left), AssertionValue::Text(right)) => Some(left.cmp(right)),
        (AssertionValue::Tuple(left), AssertionValue::Tuple(right)) => {
            for (left, right) in left.iter().zip(right) {
                match order(left, right)? {
                    Ordering::Equal => {}
                    other => return Some(other),
                }
            }
            Some(left.len().cmp(&right.len()))
        }
        _ => None,
    }
}

fn compare(
    left: &AssertionValue,
    comparison: CompareOperator,
    right: &AssertionValue,
    span: ScriptSpan,
) -> Result<bool> {
    let order = match order(left, right) {
        Some(order) => order,
        None => {
            return Err(EvaluationError::InvalidOperation {
                span,
                why: "these values cannot be compared",
            });
        }
    };
    Ok(match comparison {
        CompareOperator::Equal => order.is_eq(),
        CompareOperator::Unequal => order.is_ne(),
        CompareOperator::Less => order.is_lt(),
        CompareOperator::LessOrEqual => order.is_le(),
        CompareOperator::Greater => order.is_gt(),
        CompareOperator::GreaterOrEqual => order.is_ge(),
    })
}

fn calculate(
    left: &AssertionValue,
    operator: Operator,
    right: &AssertionValue,
    span: ScriptSpan,
) -> Result<AssertionValue> {
    let senseless = |why| EvaluationError::InvalidOperation { span, why };
    let (left, right) = match (left, right) {
        (AssertionValue::Int(left), AssertionValue::Int(right)) => (*left, *right),
        (AssertionValue::Text(text), values) if operator == Operator::Rest => {
            return Ok(AssertionValue::Text(filled(text, values)));
        }
        (AssertionValue::Text(left), AssertionValue::Text(right)) if operator == Operator::Add => {
            return Ok(AssertionValue::Text(format!("{left}{right}")));
        }
        _ => return Err(senseless("this is done with numbers only")),
    };
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Rest if right == 0 => {
            return Err(senseless("nothing is divided by zero"));
        }
        // Python rounds down; its remainder has the sign of the divisor.
        Operator::Divide => left
            .checked_div_euclid(right)
            .map(|q| if right < 0 && left.rem_euclid(right) != 0 { q - 1 } else { q }),
        Operator::Rest => left
            .checked_rem_euclid(right)
            .map(|rest| if right < 0 && rest != 0 { rest + right } else { rest }),
        Operator::And => Some(left & right),
        Operator::Or => Some(left | right),
        Operator::Left => {
            u32::try_from(right).ok().filter(|&n| n < 63).and_then(|n| left.checked_mul(1 << n))
        }
        Operator::Right => u32::try_from(right).ok().map(|n| left >> n.min(63)),
    };
    result.map(AssertionValue::Int).ok_or(senseless("this number is too large"))
}

/// Formats `'cwnd %d' % 7`: each conversion takes the next value.
fn filled(text: &str, values: &AssertionValue) -> String {
    let values = match values {
        AssertionValue::Tuple(values) => values.as_slice(),
        other => core::slice::from_ref(other),
    };
    let mut values = values.iter();
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            out.push('%');
            out.push_str(parts.next().unwrap_or_default());
            continue;
        }
        let conversion =
            part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        match values.next() {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push('?'),
        }
        out.push_str(&part[conversion..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::parse;

    fn check(code: &str) -> Result<()> {
        let span = ScriptSpan { start: 0, end: code.len() };
        let statements = parse(code, span).unwrap_or_else(|error| panic!("{error}"));
        let known = |name: &str| (name == "tcpi_snd_cwnd").then_some(7);
        run(&statements, &mut Environment::default(), &known)
    }

    #[test]
    fn conditions_evaluate_as_in_python() {
        for code in [
            "assert 1 < 2 <= 2 < 3",
            "assert not 1 < 2 < 2",
            "assert 2 + 3 * 4 == 14 and (2 + 3) * 4 == 20",
            "assert 7 // 2 == 3 and -7 // 2 == -4 and 7 // -2 == -4 and -7 // -2 == 3",
            "assert 7 % 3 == 1 and -7 % 3 == 2 and 7 % -3 == -2",
            "assert tcpi_snd_cwnd == 7, 'cwnd %d' % tcpi_snd_cwnd",
            "x = 3; x += tcpi_snd_cwnd\nassert x == 10 # ten",
            "assert 1 == 1;\\\n assert 2 \\\n == 2;\\\n",
            "assert (1,\n 2) and abs(-3) == 3 and min(4, 2) == 2",
            "assert 0x7fffffff == 2147483647",
            "assert 1 << 4 == 16 and 6 & 3 == 2 and 6 | 1 == 7 and 9 >> 1 == 4",
            "assert 'a' + 'b' == \"ab\"",
            "pass",
        ] {
            assert_eq!(check(code), Ok(()), "{code}");
        }
    }

    #[test]
    fn a_false_condition_is_reported_with_its_values() {
        let code = "assert 1 <= tcpi_snd_cwnd <= 6, 'cwnd is %d, 100%%' % tcpi_snd_cwnd";
        let Err(EvaluationError::False { values, message, span }) = check(code) else {
            panic!("false")
        };
        assert_eq!(values, "tcpi_snd_cwnd = 7");
        assert_eq!(message.as_deref(), Some("cwnd is 7, 100%"));
        assert_eq!(&code[span.start..span.end], "1 <= tcpi_snd_cwnd <= 6");
    }

    #[test]
    fn unknown_names_and_invalid_operations_are_reported() {
        assert!(matches!(check("assert tcpi_oops == 1"), Err(EvaluationError::Unknown { .. })));
        for code in ["x = 1 // 0", "x = 'a' * 2", "assert 'a' < 1", "x = 1 << 99"] {
            assert!(matches!(check(code), Err(EvaluationError::InvalidOperation { .. })), "{code}");
        }
    }

    #[test]
    fn syntax_errors_are_reported_with_their_position() {
        let place = |code: &str| {
            parse(code, ScriptSpan { start: 0, end: code.len() })
                .map(|_| ())
                .map_err(|error| error.column)
        };
        assert_eq!(place("assert"), Err(7));
        assert_eq!(place("assert (1"), Err(10));
        assert_eq!(place("assert 1.5"), Err(8));
        assert_eq!(place("while x: pass"), Err(7));
        assert_eq!(place("assert 1 2"), Err(10));
        assert_eq!(place(&"(".repeat(99)), Err(1));
        assert_eq!(place(&format!("x = {}", "(".repeat(99))), Err(38));
    }
}
