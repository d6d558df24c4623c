// Runs the scripts of the page without a page: a list of calls on standard input, a list of answers on standard output.
"use strict";

const { readFileSync } = require("node:fs");
const vm = require("node:vm");

const calls = JSON.parse(readFileSync(0, "utf8"));
const scripts = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

// As in a browser, with or without its cryptography.
function made(crypto) {
  const world = vm.createContext({ TextEncoder, TextDecoder, atob, btoa, crypto, Uint8Array, DataView, Map, Array, Error });
  vm.runInContext(scripts.join("\n"), world);
  const known = new Map(); // many dossiers have one signature, and the answer depends on what is asked alone
  const { verifies } = world;
  world.verifies = async (...given) => {
    const asked = given.map((each) => Buffer.from(each).toString("hex")).join();
    if (!known.has(asked)) known.set(asked, await verifies(...given));
    return known.get(asked);
  };
  return vm.runInContext(
    "({ Wrong, sha, sha2, hexOf, verifies, parseJson, keysIn, keysGiven, readDossier, checkDossier, layoutOf," +
      " inputsOfFile, inputsOfPixels, findRecord })", world);
}

const worlds = { own: made(undefined), browser: made(globalThis.crypto) };

async function answered({ call, world = "browser", ...given }) {
  const use = worlds[world];
  if (call === "sha") return use.hexOf(await use.sha(given.size, bytes(given.data)));
  if (call === "verifies") return use.verifies(bytes(given.key), bytes(given.signature), bytes(given.message));
  if (call === "parse") {
    const plain = (value) => value instanceof Map ? Object.fromEntries([...value].map(([name, one]) => [name, plain(one)]))
      : Array.isArray(value) ? value.map(plain) : typeof value === "bigint" ? `int ${value}` : value;
    return plain(use.parseJson(given.text, "it"));
  }
  if (call === "keys") return (await use.keysIn(given.text)).map(({ raw }) => use.hexOf(raw));
  if (call === "given keys") return (await use.keysGiven(given.text)).map(({ raw }) => use.hexOf(raw));
  if (call === "check") {
    return (await use.checkDossier(await use.readDossier(given.dossier), await use.keysGiven(given.keys))).checks;
  }
  if (call === "find") {
    const dossier = await use.readDossier(given.dossier);
    const layout = use.layoutOf(dossier.layout);
    const inputs = given.pixels ? use.inputsOfPixels(bytes(given.pixels), given.width, given.height, layout)
      : use.inputsOfFile(bytes(given.file), layout);
    const { className, weight = null, subject = "" } = given;
    const found = await use.findRecord(dossier, { inputs, className, weight, subject });
    return found && String(found.id);
  }
  throw new Error(`no call ${call}`);
}

(async () => {
  const answers = [];
  for (const call of calls) {
    try {
      answers.push({ answer: await answered(call) });
    } catch (error) {
      if (!Object.values(worlds).some(({ Wrong }) => error instanceof Wrong)) throw error;
      answers.push({ wrong: error.message });
    }
  }
  process.stdout.write(JSON.stringify(answers));
})();
