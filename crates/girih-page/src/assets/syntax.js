// Colours for the IRs, C and CUDA: one scanner, with words and comments by language.
"use strict";
const Syntax = (() => {
  const words = (text) => new Set(text.split(" "));
  const IR = "kernel open for in step free reduce serial loop if else break continue return pass local stage store load where "
    + "as index test print assert atomic cas global alloca align require combine contraction stream from unroll vector block "
    + "thread pipeline matrix warpgroup tcgen05 lanes tensor register shared private swizzle async true false inf nan div and zext";
  const GRAPH = "torch tensor graph input parameter output map else where gather scatter scan sort reduce over along descending "
    + "exclusive reverse constant data external index with normal uniform integers none true false inf nan and from set";
  const KERNEL = "kernel grid threads scratch shared slot at var for in step unroll loop if else break continue return load store "
    + "where index test splat ramp lane merge reduce all rmw cas barrier syncwarp shuffle ldmatrix trans mma add wgmma tcgen05 alloc relinquish dealloc descriptor by commit wait "
    + "groups copy async tensor on box of strides swizzle init count arrive expect parity fence poll yield print assert check global "
    + "bytes registers more fewer high low xor down idx";
  const TILE = "cuda_tile module entry global private constant for if else loop in to step iter_values break continue return yield "
    + "weak relaxed acquire release acq_rel device tl_blk sys signed unsigned optimization_hints attributes dense loc token "
    + "experimental true false";
  const C = "if else for while do break continue return goto const static extern void volatile struct typedef sizeof inline "
    + "unsigned signed switch case default __global__ __device__ __shared__ __restrict__ __launch_bounds__ __align__ asm template "
    + "typename using namespace true false";
  const PYTHON = "def return if else elif for while in import from as with lambda not and or is None True False pass break continue";
  const SCHEDULE = "schedule model policy with for by to as guard bind cluster enclose fill fuse group hoist keep pad peel "
    + "persist pipeline privatise reorder retype serial sink split stage_read stage_write swizzle tensorize tile "
    + "trim unroll unswitch vector";
  const TYPE = /^(?:(?:[fiu](?:4|8|16|32|64)|bf16|tf32|i1|f8\w*|f4\w*|f6\w*|e8m0\w*)(?:x\d+)?|ptr|tile|token|bool|char|short|int|long|float|double|u?int\d+_t|half|__half2?|__nv_\w+|tensor_view|partition_view|(?:\d+x)+\w+)$/;
  const languages = {
    torch: [words(GRAPH), "#"], tensor: [words(GRAPH), "#"], loop: [words(IR), "#"], tile: [words(IR), "#"],
    kernel: [words(KERNEL), "#"], cuda_tile: [words(TILE), "//"], c: [words(C), "//"], cuda: [words(C), "//"],
    python: [words(PYTHON), "#"], schedule: [words(SCHEDULE), "#"], plain: [new Set(), null],
  };
  const TOKEN = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[%@#!][A-Za-z_$][\w$.]*|0[xX][\da-fA-F]+\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\w*|[A-Za-z_$][\w$.]*|\s+|./gu;

  // The line's pieces as [class, text]; no class where it is plain.
  function scan(line, language) {
    const [keywords, comment] = languages[language] || languages.plain;
    const out = [];
    let code = line, rest = "";
    if (comment) {
      const at = commentAt(line, comment);
      if (at >= 0) { code = line.slice(0, at); rest = line.slice(at); }
    }
    for (const match of code.matchAll(TOKEN)) {
      const word = match[0], first = word[0];
      let kind = "";
      if (first === '"' || (first === "'" && word.length > 1)) kind = "s";
      else if (first >= "0" && first <= "9") kind = TYPE.test(word) ? "t" : "n";
      else if ("%@".includes(first) && word.length > 1) kind = "v";
      else if (/[A-Za-z_$]/.test(first)) {
        if (TYPE.test(word)) kind = "t";
        else if (keywords.has(word) || keywords.has(word.split(".")[0])) kind = "k";
        else if (code[match.index + word.length] === "(" || word.includes(".")) kind = "f";
      }
      out.push([kind, word]);
    }
    if (rest) out.push(["c", rest]);
    return out;
  }

  // Where a comment begins that is in no string.
  function commentAt(line, mark) {
    let quoted = false;
    for (let i = 0; i < line.length; i++) {
      if (line[i] === "\\") i++;
      else if (line[i] === '"') quoted = !quoted;
      else if (!quoted && line.startsWith(mark, i) && (mark !== "#" || i === 0 || line[i - 1] === " ")) return i;
    }
    return -1;
  }

  // Fills an element with a coloured line.
  function paint(element, line, language) {
    for (const [kind, text] of scan(line, language)) {
      if (!kind) { element.append(text); continue; }
      const span = document.createElement("span");
      span.className = kind;
      span.textContent = text;
      element.append(span);
    }
  }
  return { paint, scan };
})();
