// Shows on the page what came of checking the dossier inside it, and asks for the operator's key and for a record.
"use strict";

const MARKS = { yes: "✓", no: "✗", open: "–", strange: "?" };
const BY_KEY = ["signed", "checkpoint"]; // what a key from elsewhere has to vouch for
const VERDICTS = {
  checking: ["Checking …", "The proofs are worked through in your browser."],
  verified: ["Verified",
    "What stands under “What is checked” holds. The other words of this page no script of it can check: maxrr verify does. You gave the key:"],
  strange: ["All proofs in here hold. The last step is yours",
    "Give the operator's public key, from a place that you trust: with a key of their own, a forger's page would hold, too."],
  wrong: ["Not verified", "Do not rely on this page. What is wrong:"],
};

const byId = (id) => document.getElementById(id);
let dossier = null;
const newest = { all: 0, record: 0 }; // of several checks that overlap, the one whose answer is shown

const element = (name, textContent) => Object.assign(document.createElement(name), { textContent });
const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

function showVerdict(state, lines = []) {
  const [title, words] = VERDICTS[state];
  const list = document.createElement("ul");
  list.append(...lines.map((line) => element("li", line)));
  const box = byId("verdict");
  box.dataset.state = state;
  box.replaceChildren(element("strong", title), element("p", words), ...(lines.length ? [list] : []));
}

function showCheck({ name, held, wrong }, given) {
  const item = document.querySelector(`[data-check="${name}"]`);
  const strange = held && !given && BY_KEY.includes(name);
  const state = held === null ? "open" : !held ? "no" : strange ? "strange" : "yes";
  item.dataset.held = state;
  item.querySelector(".mark").textContent = MARKS[state];
  item.querySelector(".why").textContent = strange
    ? "Signed with the key inside this page. Whether that is the operator's, only a key from elsewhere can tell."
    : wrong && sentence(wrong);
}

// Whether the page says in the marked places what is signed.
function checkWords(said) {
  if (said === null) return { name: "words", held: null, wrong: "not looked at: it rests on the receipt" };
  const plain = (text) => text.replace(/\u00a0/g, " ").trim();
  const other = [...document.querySelectorAll("[data-signed]")]
    .filter((each) => plain(each.textContent) !== plain(String(said.get(each.dataset.signed))))
    .map((each) => each.dataset.signed);
  const wrong = other.length ? `the page says another ${other.join(", ")} than is signed` : "";
  return { name: "words", held: !other.length, wrong };
}

async function showAll() {
  const run = ++newest.all;
  showVerdict("checking");
  let [keys, given] = [dossier.keys, false];
  const text = byId("key-text").value.trim();
  let about = `The key inside this page has the id ${dossier.keys.map(({ id }) => id).join(", ")}.`;
  if (text) {
    try {
      keys = await keysGiven(text);
      given = true;
      about = `You gave the key with the id ${keys.map(({ id }) => id).join(", ")}.`;
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      about = `What you gave cannot be used: ${error.message}.`;
    }
  }
  const { checks, said } = await checkDossier(dossier, keys);
  if (run !== newest.all) return;
  byId("key-said").textContent = about;
  checks.push(checkWords(said));
  checks.forEach((check) => showCheck(check, given));
  const wrong = checks.filter(({ held }) => held === false).map((check) => check.wrong);
  if (wrong.length) showVerdict("wrong", wrong.map(sentence));
  else if (given) showVerdict("verified", keys.map(({ id }) => id));
  else showVerdict("strange");
}

// ---- the record that somebody still has

async function inputsOf(file, layout) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (!same(bytes.subarray(0, 4), fromHex("89504e47", "PNG", 4))) return inputsOfFile(bytes, layout);
  const image = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  return inputsOfPixels(data, image.width, image.height, layout);
}

async function showRecord(file) {
  const run = ++newest.record;
  const answer = (state, words) => {
    if (run === newest.record) Object.assign(byId("own-said"), { textContent: words }).dataset.state = state;
  };
  answer("", "Looking …");
  try {
    const typed = byId("own-weight").value.trim();
    const weight = typed === "" ? null : Number(typed);
    if (weight !== null && !Number.isFinite(weight)) throw new Wrong("the weight is no number");
    const className = byId("own-class").value;
    if (!className) throw new Wrong("type the record's class first: it is part of what was hashed");
    const subject = byId("own-subject")?.value.trim() ?? "";
    const inputs = await inputsOf(file, layoutOf(dossier.layout));
    const found = await findRecord(dossier, { inputs, className, weight, subject });
    if (found) answer("yes", `It is the one: this is record ${found.id}, to the last bit.`);
    else answer("no", "It is none of them: its content, class, weight or person is another than theirs.");
  } catch (error) {
    answer("no", sentence(error instanceof Wrong ? error.message : "the file cannot be read"));
  }
}

function listen() {
  let [waiting, file] = [null, null];
  byId("key").hidden = byId("own").hidden = false;
  byId("own-layout").textContent = layoutWords(layoutOf(dossier.layout));
  byId("key-text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(showAll, 150);
  });
  byId("key-file").addEventListener("change", async ({ target }) => {
    if (target.files.length) byId("key-text").value = await target.files[0].text();
    await showAll();
  });
  const look = (given) => {
    file = given ?? file;
    if (file) showRecord(file);
  };
  byId("own-file").addEventListener("change", ({ target }) => look(target.files[0]));
  for (const id of ["own-class", "own-weight", "own-subject"]) byId(id)?.addEventListener("change", () => look());
  for (const kind of ["dragover", "drop"]) {
    byId("own").addEventListener(kind, (event) => {
      event.preventDefault();
      if (kind === "drop") look(event.dataTransfer.files[0]);
    });
  }
}

async function start() {
  try {
    dossier = await readDossier(byId("dossier").textContent);
  } catch (error) {
    showVerdict("wrong", [`The dossier inside this page cannot be read: ${error.message}.`]);
    return;
  }
  listen();
  await showAll();
}

start();
