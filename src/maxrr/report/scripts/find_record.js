// Finds the record of a dossier that somebody still has: from its inputs, its class and, if it had one, its weight.
"use strict";

const NUMPY = { b1: "bool", u1: "uint8", u2: "uint16", u4: "uint32", u8: "uint64", i1: "int8", i2: "int16", i4: "int32",
  i8: "int64", f2: "float16", f4: "float32", f8: "float64" };

// The type and shape of a record, from the bytes of the dossier; null for records of several inputs.
function layoutOf(bytes) {
  const parts = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let place = 0; place < bytes.length;) {
    const size = place + 8 <= bytes.length ? Number(view.getBigUint64(place, true)) : Infinity;
    if (place + 8 + size > bytes.length) return null;
    parts.push(new TextDecoder().decode(bytes.subarray(place + 8, place + 8 + size)));
    place += 8 + size;
  }
  const [type, ...shape] = parts;
  if (!Object.values(NUMPY).includes(type) || !shape.every((size) => /^[0-9]+$/.test(size))) return null;
  return { type, shape: shape.map(Number) };
}

const layoutWords = (layout) =>
  layout ? `${layout.type}, ${layout.shape.join(" × ") || "one number"}` : "several inputs";

// The bytes of one record in an .npy file: little-endian, in C order.
function inputsOfNpy(bytes, layout) {
  const version = bytes[6];
  const [start, size] = version === 1 ? [10, bytes[8] + 256 * bytes[9]]
    : [12, new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true)];
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + size));
  const [, order, kind] = /'descr':\s*'([<>|=])([a-z][0-9]+)'/.exec(header) ?? [];
  const [, fortran] = /'fortran_order':\s*(True|False)/.exec(header) ?? [];
  const [, shown] = /'shape':\s*\(([0-9, ]*)\)/.exec(header) ?? [];
  if (!layout) throw new Wrong("this record has several inputs: give its bytes, one input after the other");
  if (!kind || !fortran || shown === undefined) throw new Wrong("this .npy file is of a kind that cannot be read here");
  const shape = shown.split(",").filter((part) => part.trim()).map(Number);
  if (NUMPY[kind] !== layout.type) {
    throw new Wrong(`these are numbers of type ${NUMPY[kind] ?? kind}, and the record has ${layout.type}`);
  }
  const one = shape.length === layout.shape.length + 1 && shape[0] === 1 ? shape.slice(1) : shape;
  if (one.join() !== layout.shape.join()) {
    throw new Wrong(`this has the shape ${shape.join(" × ")}, and the record has ${layout.shape.join(" × ")}`);
  }
  if (fortran === "True" && one.filter((each) => each > 1).length > 1) {
    throw new Wrong("the numbers are in Fortran's order: save them in C's");
  }
  const content = bytes.slice(start + size);
  const wide = Number(kind.slice(1));
  if (content.length !== wide * one.reduce((product, each) => product * each, 1)) throw new Wrong("the .npy file is cut off");
  if (order === ">") for (let place = 0; place < content.length; place += wide) content.subarray(place, place + wide).reverse();
  return content;
}

// The bytes of a record that is an image, from the pixels of a canvas (red, green, blue, opacity).
function inputsOfPixels(pixels, width, height, layout) {
  const shape = layout?.shape ?? [];
  const [channels, high, wide] = shape.length === 2 ? [1, ...shape] : shape;
  if (layout?.type !== "uint8" || ![2, 3].includes(shape.length) || ![1, 3].includes(channels)) {
    throw new Wrong(`the record is not kept as pixels in bytes, but as ${layoutWords(layout)}: give an .npy file`);
  }
  if (width !== wide || height !== high) {
    throw new Wrong(`the image has ${width} × ${height} pixels, and the record has ${wide} × ${high}`);
  }
  const inputs = new Uint8Array(channels * high * wide);
  for (let place = 0; place < high * wide; place++) {
    const [red, green, blue] = pixels.subarray(4 * place, 4 * place + 3);
    if (channels === 1 && (red !== green || green !== blue)) throw new Wrong("the image is coloured, and the record is grey");
    for (let channel = 0; channel < channels; channel++) inputs[channel * high * wide + place] = [red, green, blue][channel];
  }
  return inputs;
}

// The bytes of a record from a file that is no image: an .npy file, or the bytes themselves.
function inputsOfFile(bytes, layout) {
  if (bytes.length > 12 && bytes[0] === 0x93 && same(bytes.subarray(1, 6), utf8("NUMPY"))) return inputsOfNpy(bytes, layout);
  const wide = layout && Number(Object.keys(NUMPY).find((kind) => NUMPY[kind] === layout.type).slice(1));
  const size = layout && layout.shape.reduce((product, each) => product * each, wide);
  if (layout && bytes.length !== size) {
    throw new Wrong(`this has ${bytes.length} bytes, and the record (${layoutWords(layout)}) has ${size}`);
  }
  return bytes;
}

// Whom a record may be about, by what was typed: a text, or the same as a number.
function subjectsOf(subject, typed) {
  if (subject !== null) return [subject];
  if (typed === "") return [null];
  return /^-?(0|[1-9][0-9]{0,18})$/.test(typed) ? [typed, BigInt(typed)] : [typed];
}

// The record with these inputs, this class and weight: one of the dossier's, or null.
async function findRecord(dossier, { inputs, className, weight, subject }) {
  const weighed = [];
  if (weight !== null) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, weight, true);
    weighed.push(framed(join(utf8("weight:"), bytes)));
  }
  for (const record of dossier.records) {
    for (const whose of subjectsOf(dossier.subject, subject)) {
      const before = framed(identifierBytes(record.id), identifierBytes(whose), identifierBytes(className), dossier.layout);
      const hash = await sha256(before, ...weighed, inputs);
      const value = await sha256(framed(utf8("maxrr/commitment/v1/value"), record.salt, hash));
      if (same(value, record.value)) return record;
    }
  }
  return null;
}
