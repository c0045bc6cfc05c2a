//! Diagnostics in the style of compilers: a line of the user's text with a part marked.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Style of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStyle {
    /// Plain text.
    Plain,
    /// Text with terminal colours.
    Coloured,
}

/// Severity of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnippetSeverity {
    /// The input is invalid.
    Error,
    /// The input is valid but doubtful.
    Warning,
}

/// A diagnostic about a position in a text.
#[derive(Debug, Clone)]
pub struct Annotated<'a> {
    /// Severity.
    pub weight: SnippetSeverity,
    /// Name of the text.
    pub file: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in characters; 0 marks a position between two.
    pub width: usize,
    /// The line itself.
    pub source_line: &'a str,
    /// The error.
    pub message: &'a str,
    /// Text beside the mark.
    pub label: Option<String>,
    /// How to correct it.
    pub hint: Option<&'a str>,
}

/// Renders all diagnostics, one block each, separated by blank lines, with a final newline.
pub fn render<'a>(marked: impl IntoIterator<Item = Annotated<'a>>, look: ReportStyle) -> String {
    let renderer = match look {
        ReportStyle::Plain => Renderer::plain(),
        ReportStyle::Coloured => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let blocks: Vec<String> =
        marked.into_iter().map(|marked| renderer.render(&[group(&marked)])).collect();
    blocks.join("\n\n") + "\n"
}

fn group<'a>(marked: &Annotated<'a>) -> Group<'a> {
    let line = marked.source_line;
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let (start, end) = (byte(marked.column - 1), byte(marked.column - 1 + marked.width));
    let mark = AnnotationKind::Primary.span(start..end).label(marked.label.clone());
    let snippet = Snippet::source(line).path(marked.file).line_start(marked.line).annotation(mark);
    let level = match marked.weight {
        SnippetSeverity::Error => Level::ERROR,
        SnippetSeverity::Warning => Level::WARNING,
    };
    let group = level.primary_title(marked.message).element(snippet);
    match marked.hint {
        Some(hint) => group.element(Level::HELP.message(hint)),
        None => group,
    }
}
