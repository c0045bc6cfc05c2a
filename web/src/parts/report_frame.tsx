/** A report page of the engine in a frame without access to this page. */
export function ReportFrame({ html, title }: { html: string; title: string }) {
  return <iframe class="report" title={title} sandbox="allow-scripts allow-downloads" srcdoc={html} />;
}

/** Saves a text as a file. */
export function save(name: string, type: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
