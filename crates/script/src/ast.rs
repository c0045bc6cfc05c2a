//! A script as it was written: every part with its place.

use packet::{Flags, SackBlock};
use units::Duration;

pub use crate::diagnostic::Span;

/// Something, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// What it is.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// A whole script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// `--name=value` at the top.
    pub options: Vec<Setting>,
    /// The command before the first event.
    pub init: Option<Spanned<String>>,
    /// What happens, in the order of the text.
    pub events: Vec<Event>,
}

/// An option at the top of a script: `--tolerance_usecs=6000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Without the dashes.
    pub name: Spanned<String>,
    /// Behind the `=`.
    pub value: Option<Spanned<String>>,
}

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub when: Spanned<When>,
    /// What.
    pub action: Action,
    /// All of it but the time.
    pub span: Span,
}

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// `*`: whenever it comes.
    Any,
    /// `0.1`: since the script began.
    Absolute(Duration),
    /// `+0.1`: since the event before.
    Relative(Duration),
    /// `0.1~0.2`, or `+0.1~+0.2`.
    Between {
        /// Since the event before, not since the beginning.
        relative: bool,
        /// Earliest.
        from: Duration,
        /// Latest.
        to: Duration,
    },
    /// `0.1...0.2`, or `+0.1...0.2`: a call that begins and ends.
    Blocking {
        /// Since the event before, not since the beginning.
        relative: bool,
        /// The call is made.
        from: Duration,
        /// It returns.
        to: Duration,
    },
}

/// What an event is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A packet comes or goes.
    Packet(Box<Packet>),
    /// The application calls.
    Call(Box<Call>),
    /// `` `...` ``: a command for the shell.
    Command(Spanned<String>),
    /// `%{ ... }%`: assertions, line by line.
    Code(Vec<Statement>),
}

/// A line of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// What a line of an assertion does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// `assert condition, message`
    Assert(Node, Option<Node>),
    /// `name = value`, or with an operator: `name += value`.
    Assign(String, Option<Operator>, Node),
    /// `pass`, `print(...)`: nothing.
    Nothing,
}

/// A value in an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of values in assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// A variable, a field of tcp_info, or a constant.
    Name(String),
    /// `-x`
    Negative(Box<Node>),
    /// `not x`
    Not(Box<Node>),
    /// `a + b`
    Binary(Box<Node>, Operator, Box<Node>),
    /// `a < b <= c`
    Compare(Box<Node>, Vec<(Comparison, Node)>),
    /// `a and b`
    And(Box<Node>, Box<Node>),
    /// `a or b`
    Or(Box<Node>, Box<Node>),
    /// `abs(x)`, `min(x, y)`
    Function(String, Vec<Node>),
    /// `(x, y)`
    Tuple(Vec<Node>),
}

/// Operators on values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `//` and `/`, rounded down.
    Divide,
    /// `%`: the rest, or the values of a text.
    Rest,
    /// `&`
    And,
    /// `|`
    Or,
    /// `<<`
    Left,
    /// `>>`
    Right,
}

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// `>`: the host sends it; `<`: it arrives.
    pub outbound: bool,
    /// `[ect0]` and its like.
    pub ecn: Option<Spanned<EcnMark>>,
    /// What the packet carries.
    pub body: Body,
}

/// What is written of the ECN field of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnMark {
    /// `[noecn]`: not capable (0).
    NotCapable,
    /// `[ect1]`: 1.
    Ect1,
    /// `[ect0]`: 2.
    Ect0,
    /// `[ect01]`: either of the two capable ones.
    Either,
    /// `[ce]`: congestion was met (3).
    Met,
}

/// What a packet carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Box<Tcp>),
    /// `udp`, `icmp` and other things that are read but not run; the word that says what.
    Other(Spanned<String>),
}

/// A TCP segment: `P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tcp {
    /// Control bits.
    pub flags: Spanned<Flags>,
    /// The counter of accurate ECN, a digit among the flags.
    pub ace: Option<u8>,
    /// First sequence number, relative to the beginning of the stream.
    pub seq: Spanned<u32>,
    /// Bytes of payload.
    pub len: Spanned<u32>,
    /// What it acknowledges.
    pub ack: Option<Spanned<u32>>,
    /// Window field.
    pub window: Option<Spanned<u16>>,
    /// Urgent pointer.
    pub urgent: Option<Spanned<u16>>,
    /// Its options.
    pub options: Spanned<OptionList>,
}

/// The options of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionList {
    /// `<...>`: whatever they are.
    Any,
    /// These, in this order; none if the list is empty.
    These(Vec<Spanned<TcpOption>>),
}

/// One TCP option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOption {
    /// `nop`
    Nop,
    /// `eol`
    Eol,
    /// `mss 1460`
    Mss(u16),
    /// `wscale 8`
    WindowScale(u8),
    /// `sackOK`
    SackOk,
    /// `sack 1:2 3:4`
    Sack(Vec<SackBlock>),
    /// `TS val 1 ecr 2`
    Timestamps {
        /// TSval.
        val: u32,
        /// TSecr.
        ecr: u32,
    },
    /// One that is read but not run: `FO`, `md5` and their like.
    Other(String),
}

/// A call: `write(4, ..., 1000) = 1000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub name: Spanned<String>,
    /// With what.
    pub args: Vec<Expr>,
    /// What it returns.
    pub result: Expr,
    /// `EAGAIN` and its like.
    pub errno: Option<Spanned<String>>,
}

/// A value in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExprKind {
    /// `...`: whatever it is.
    Any,
    /// A number.
    Int(i64),
    /// The name of a constant.
    Word(String),
    /// `"text"`
    Text(String),
    /// `A|B`
    Or(Vec<Expr>),
    /// `[...]`
    List(Vec<Expr>),
    /// `{name=value, ...}`
    Struct(Vec<(Option<String>, Expr)>),
    /// `htons(80)`
    Function(String, Vec<Expr>),
}
