// What stands at the top: how far, how fast, how many wrong labels are left, and whether all is saved.

import { canRedo, canUndo, rate } from "./decide.js";
import { $, number, say } from "./dom.js";
import { on, store } from "./store.js";

export function progress(facts) {
  store.progress = facts;
  draw();
}

export function draw() {
  const facts = store.progress;
  if (!facts) return;
  const { listed, open } = facts.counts;
  const done = listed - open;
  $("meter").setAttribute("aria-valuemax", listed);
  $("meter").setAttribute("aria-valuenow", done);
  $("meter").firstElementChild.style.width = `${listed ? (100 * done) / listed : 0}%`;
  const speed = rate();
  const time = speed && open ? `, ${minutes(open / speed)} to go` : "";
  const [asked, taken] = facts.suggestions;
  const right = asked ? `, ${number(taken)} of ${number(asked)} suggestions taken` : "";
  say($("progress"), `${number(done)} of ${number(listed)} decided${right}${speed ? `, ${number(speed)} a minute${time}` : ""}`);
  const { expected, low, high, stop, next_share: share, one_in: oneIn, next } = facts.left;
  // Before, the page would only repeat a score.
  say($("left"), facts.answers < facts.enough ? `wrong left: shown after ${facts.enough} decisions` :
    `about ${number(expected)} wrong left (${number(low)} to ${number(high)})`);
  $("left").title = `Expected among all labels nobody has decided, with a 90 % interval, from the answers so far; of labels that are ` +
    `not listed, as the run sees them until some are checked. Of the next ${next}, ${inHundred(share)} in 100 are expected to be wrong.`;
  const finished = open === 0 && listed > 0;
  $("advice").hidden = !stop && !finished;
  say($("advice"), finished ? "All issues are decided." : stop ? `You can stop here: probably fewer than 1 in ${oneIn} of the next are wrong.` : "");
}

// None of a hundred only where none is expected.
function inHundred(share) {
  return share > 0 && share < 0.01 ? "fewer than 1" : Math.round(100 * share);
}

function minutes(left) {
  if (left < 1) return "under a minute";
  return left < 90 ? `${Math.round(left)} min` : `${(left / 60).toFixed(1)} h`;
}

export function saving(outbox) {
  const waiting = outbox.waiting.length;
  const many = `${number(waiting)} ${waiting === 1 ? "decision" : "decisions"}`;
  const problem = outbox.problem?.kind;
  const saved = $("saved");
  saved.dataset.kind = !store.online ? "gone" : problem ? problem : waiting ? "waiting" : "saved";
  say(saved, waiting ? `${number(waiting)} not saved yet` : store.online ? "all saved" : "no server");
  const kept = outbox.stored ? "kept in this browser" : "kept in this tab only; do not close it";
  const banner = $("banner");
  let words = "";
  if (problem === "full") words = `Not saved: ${outbox.problem.message}. ${many} ${waiting === 1 ? "is" : "are"} ${kept} and tried again.`;
  else if (problem === "denied" || store.denied) words = `The server was restarted with another token. Open the address it printed; ${waiting ? `${many} ${waiting === 1 ? "is" : "are"} ${kept} and sent then` : "nothing is lost"}.`;
  else if (!store.online) words = `The server is gone. ${waiting ? `${many} ${waiting === 1 ? "is" : "are"} ${kept}` : "You can go on: decisions are kept in this browser"} and sent when it is back.`;
  else if (store.refused) words = store.refused;
  banner.hidden = !words;
  say(banner, words);
  for (const [id, can] of [["do-undo", canUndo()], ["do-redo", canRedo()]]) if ($(id)) $(id).disabled = !can;
}

on("rows", draw);
