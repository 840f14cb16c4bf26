// Decisions on their way to the server. Each has a key of its own and is kept in the browser until the server has it on its
// disk; sent twice, it counts once. What another tab or an earlier visit left behind is sent, too.

import * as api from "./api.js";
import { tell } from "./store.js";

const BATCH = 500;
const MOST_WAIT = 5000;

export class Outbox {
  constructor(run) {
    this.prefix = `labelsieve:${run}:out:`;
    this.name = this.prefix + crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.waiting = [];
    this.sending = false;
    this.wait = 0;
    this.problem = null;
    this.adopt();
  }

  // Take over what is left of tabs that are gone. If such a tab is still open, both send it, and it counts once.
  adopt() {
    const known = new Set(this.waiting.map((entry) => entry.key));
    for (const name of this.others()) {
      for (const entry of read(name)) if (!known.has(entry.key)) this.waiting.push(entry);
    }
    this.keep();
    if (this.stored) for (const name of this.others()) localStorage.removeItem(name); // else it is all that outlives this tab
  }

  others() {
    const found = [];
    try {
      for (let i = 0; i < localStorage.length; i++) {
        const name = localStorage.key(i);
        if (name.startsWith(this.prefix) && name !== this.name) found.push(name);
      }
    } catch { /* no storage in this browser: what waits is kept in memory */ }
    return found;
  }

  keep() {
    try {
      if (this.waiting.length) localStorage.setItem(this.name, JSON.stringify(this.waiting));
      else localStorage.removeItem(this.name);
      this.stored = true;
    } catch {
      this.stored = false;
    }
  }

  add(entries) {
    this.waiting.push(...entries);
    this.keep();
    tell("outbox");
    this.flush();
  }

  async flush() {
    if (this.sending || !this.waiting.length) return;
    this.sending = true;
    clearTimeout(this.timer);
    const batch = this.waiting.slice(0, BATCH);
    try {
      const { saved } = await api.decide(batch.map(plain));
      this.done(saved);
      this.problem = null;
      this.wait = 0;
      tell("saved", saved);
    } catch (error) {
      await this.failed(error, batch);
    }
    this.sending = false;
    tell("outbox");
    if (this.waiting.length) this.timer = setTimeout(() => this.flush(), this.wait);
  }

  done(entries) {
    const keys = new Set(entries.map((entry) => entry.key));
    this.waiting = this.waiting.filter((entry) => !keys.has(entry.key));
    this.keep();
  }

  async failed(error, batch) {
    this.problem = error;
    this.wait = Math.min(Math.max(2 * this.wait, 500), MOST_WAIT);
    if (error.kind !== "refused") return;
    // One bad entry must not hold up the rest: send them one by one, and give back what the server will never take.
    for (const entry of batch) {
      try {
        const { saved } = await api.decide([plain(entry)]);
        this.done(saved);
        tell("saved", saved);
      } catch (again) {
        this.problem = again;
        if (again.kind !== "refused") return;
        this.done([entry]);
        tell("refused", { entry, words: again.message });
      }
    }
    this.problem = null;
  }

  has(id) {
    return this.waiting.some((entry) => entry.id === id);
  }
}

function plain({ key, id, action, label, who, replaces }) {
  return { key, id, action, label: label ?? null, who, replaces: replaces ?? null };
}

function read(name) {
  try {
    const found = JSON.parse(localStorage.getItem(name));
    return Array.isArray(found) ? found.filter((entry) => typeof entry?.key === "string" && typeof entry?.id === "string") : [];
  } catch {
    return [];
  }
}

export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
