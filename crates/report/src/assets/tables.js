// Tables whose rows can be searched and sorted, and whose rows are cards on a narrow page. Without this program
// they are plain tables.

// The number or the text that a row is sorted by.
function rankOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.rank === undefined ? cell.textContent : Number(cell.dataset.rank);
}

function compareRows(column) {
  return (one, other) => {
    const [a, b] = [rankOf(one, column), rankOf(other, column)];
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
}

function searchable(box) {
  const body = box.querySelector("tbody");
  const rows = [...body.rows];
  const words = rows.map((row) => row.textContent.toLowerCase());
  const search = element("input", { type: "search", class: "search", "aria-label": "Search in the table", placeholder: `Search ${rows.length} rows` });
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, index) => {
      row.hidden = !wanted.every((word) => words[index].includes(word));
    });
  });
  box.before(search);
  const heads = [...box.querySelectorAll("th")];
  heads.forEach((head, column) => {
    const button = element("button", { type: "button", class: "sort" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // Numbers begin with the largest.
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sorted = [...rows].sort(compareRows(column));
      body.replaceChildren(...(order === "ascending" ? sorted : sorted.reverse()));
    });
  });
}

// Columns from which a row is a card on a narrow page.
const CARDS = 5;

function nameCells(box) {
  const names = [...box.querySelectorAll("thead th")].map((head) => head.textContent);
  if (names.length < CARDS) return;
  box.classList.add("cards");
  for (const row of box.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, index) => (cell.dataset.name = names[index]));
}

for (const box of document.querySelectorAll(".table")) nameCells(box);
for (const box of document.querySelectorAll(".table.search")) searchable(box);
