// Requests to the server this page came from. A failure says what kind it is: gone, denied, full or refused. Another program may
// have the server's place: it is refused only what our server refuses, and that says why.

export class Failed extends Error {
  constructor(kind, words) {
    super(words);
    this.kind = kind;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(15000), ...options });
  } catch {
    throw new Failed("gone", "the server does not answer");
  }
  const facts = await answer.json().catch(() => null);
  if (answer.ok && facts !== null) return facts;
  const words = facts?.error ?? `status ${answer.status}`;
  const ours = facts?.error && (answer.status < 500 || answer.status === 507);
  const kind = !ours ? "gone" : [401, 403, 421].includes(answer.status) ? "denied" : answer.status === 507 ? "full" : "refused";
  throw new Failed(kind, words);
}

async function bytes(path) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(60000) });
    if (answer.ok) return await answer.arrayBuffer();
  } catch {
    throw new Failed("gone", "the server does not answer");
  }
  throw new Failed("refused", (await answer.json().catch(() => null))?.error ?? `status ${answer.status}`);
}

const query = (facts) => new URLSearchParams(Object.entries(facts).filter(([, value]) => value !== "" && value !== false)).toString();

export const start = () => ask("/api/start");
export const rows = (filter, view, offset, limit) => ask(`/api/rows?${query({ ...filter, view, offset, limit })}`);
export const nextOpen = (filter, view, after) => ask(`/api/next?${query({ ...filter, view, after })}`);
export const row = (id) => ask(`/api/row?${query({ id })}`);
export const at = (row) => ask(`/api/at?${query({ row })}`);
export const map = () => bytes("/api/map");
export const changes = (since, heard, mark) => ask(`/api/changes?${query({ since, heard, mark })}`);
export const decide = (decisions) =>
  ask("/api/decisions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ decisions }) });

export const picture = (id, size = "small") => `/api/picture?${query({ id, size })}`;
