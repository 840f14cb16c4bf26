// All that the page knows, in one object; whoever changes it tells the others by name.

export const store = {
  classes: [],
  who: "",
  pictures: true,
  run: "",
  map: false, // whether the run has one
  meanings: {}, // of what is wrong with samples themselves
  filter: { given: "", suggested: "", state: "open", text: "", everything: false, own: "", area: "" },
  view: "", // the server's key of the list that is shown
  total: 0,
  known: false, // whether the server has said how many there are
  rows: new Map(), // place in the list -> row
  focus: 0, // place in the list
  anchor: 0, // where a selection with shift began
  selected: new Set(), // places in the list
  mode: "grid",
  size: 1, // of the cards
  columns: 1,
  perPage: 12,
  events: 0, // decisions in the log that all rows here have heard of; the next look asks for those after it
  progress: null,
  online: true,
};

const listeners = new Map();

export function on(names, act) {
  for (const name of names.split(" ")) {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(act);
  }
}

export function tell(name, facts) {
  for (const act of listeners.get(name) ?? []) act(facts);
}

export const current = () => store.rows.get(store.focus);

// Places that an action is meant for: the selection, or else the one in focus.
export function meant() {
  if (store.selected.size) return [...store.selected].sort((a, b) => a - b);
  return store.total ? [store.focus] : [];
}

export function rowsOf(id) {
  return [...store.rows.values()].filter((row) => row.id === id);
}

export const pageOf = (place) => Math.floor(place / store.perPage);
export const label = (row) => store.classes[row.given];
