//! A place in a user's text, shown as compilers show it: the line with what is meant marked.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// How a report is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Text only.
    Plain,
    /// With the colours of a terminal.
    Coloured,
}

/// Severity of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// What was asked for cannot be done.
    Error,
    /// It can be done, but something in the text is doubtful.
    Warning,
}

/// A position in a text and the report about it.
#[derive(Debug, Clone)]
pub struct Marked<'a> {
    /// Severity.
    pub weight: Weight,
    /// Name of the text.
    pub file: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// Characters; 0 marks a place between two.
    pub width: usize,
    /// The line itself.
    pub source_line: &'a str,
    /// What is wrong.
    pub message: &'a str,
    /// Text beside the mark.
    pub label: Option<String>,
    /// The cure.
    pub hint: Option<&'a str>,
}

/// Renders all reports, one block each, a blank line between, with a newline at the end.
pub fn render<'a>(marked: impl IntoIterator<Item = Marked<'a>>, look: Look) -> String {
    let renderer = match look {
        Look::Plain => Renderer::plain(),
        Look::Coloured => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let blocks: Vec<String> =
        marked.into_iter().map(|marked| renderer.render(&[group(&marked)])).collect();
    blocks.join("\n\n") + "\n"
}

fn group<'a>(marked: &Marked<'a>) -> Group<'a> {
    let line = marked.source_line;
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let (start, end) = (byte(marked.column - 1), byte(marked.column - 1 + marked.width));
    let mark = AnnotationKind::Primary.span(start..end).label(marked.label.clone());
    let snippet = Snippet::source(line).path(marked.file).line_start(marked.line).annotation(mark);
    let level = match marked.weight {
        Weight::Error => Level::ERROR,
        Weight::Warning => Level::WARNING,
    };
    let group = level.primary_title(marked.message).element(snippet);
    match marked.hint {
        Some(hint) => group.element(Level::HELP.message(hint)),
        None => group,
    }
}
