// A flat board: pieces are dragged, turned by a ring or two fingers, selected by a box, and locked by a double click.
// World units are pixels of the pieces' pictures; a place is [x, y, clockwise degrees]. board.py is the other side.

import { stage, TAP } from "/stage.js";

const SVG = "http://www.w3.org/2000/svg";
const NEAR = 0.35; // of a piece's width: closer than this, likely matches draw a piece to them
const STRAIGHT = 20; // degrees that may lack for that

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const make = (tag, parent, attributes = {}) => parent.appendChild(set(document.createElementNS(SVG, tag), attributes));
const show = (element, on) => set(element, { visibility: on ? "visible" : "hidden" });
const mean = (points) => [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length);

const moved = ([x, y, degrees]) => `translate(${x} ${y}) rotate(${degrees})`;

function turned([x, y, degrees], [cx, cy], by) {
  const [c, s] = [Math.cos((by * Math.PI) / 180), Math.sin((by * Math.PI) / 180)];
  return [cx + c * (x - cx) - s * (y - cy), cy + s * (x - cx) + c * (y - cy), degrees + by];
}

const within = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;

export default {
  template: `<div class="da-board"><svg tabindex="0" role="application"
    aria-label="Board. Arrow keys move the selected piece, R turns it, L locks it, comma and full stop select others."></svg></div>`,
  mixins: [stage],

  async mounted() {
    this.begin();
    this.pieces = [];
    this.matches = [];
    this.boxing = false;
    this.svg = this.$el.querySelector("svg");
    this.observer = new ResizeObserver(() => this.resized());
    this.build(await this.described());
    this.observer.observe(this.$el);
    this.listen(this.svg, "pointerdown", "pointermove", "pointerup", "pointercancel", "wheel", "keydown");
    this.$emit("ready", {});
  },

  methods: {
    build({ pieces, grid }) {
      this.described = pieces;
      this.grid = grid;
      const defs = make("defs", this.svg);
      this.left = make("rect", make("clipPath", defs, { id: `left-${this.$el.id}` }));
      this.right = make("rect", make("clipPath", defs, { id: `right-${this.$el.id}` }));
      this.world = make("g", this.svg);
      if (grid) this.drawGrid(make("g", this.world, { class: "grid" }));
      this.target = make("rect", this.world, { class: "target", visibility: "hidden" });
      const clipped = make("g", this.world, { "clip-path": `url(#right-${this.$el.id})` });
      this.layer = make("g", clipped);
      const before = make("g", this.world, { "clip-path": `url(#left-${this.$el.id})` });
      this.before = make("g", before, { visibility: "hidden" });
      this.ghosts = make("g", this.world, { class: "ghosts" });
      this.partner = make("path", this.world, { class: "partner", visibility: "hidden" });
      this.ring = make("g", this.world, { class: "ring", visibility: "hidden" });
      this.circle = make("circle", this.ring);
      this.knob = make("circle", this.ring, { class: "knob" });
      this.box = make("rect", this.world, { class: "box", visibility: "hidden" });
      this.edge = make("line", this.world, { class: "wipe", visibility: "hidden" });
      pieces.forEach((piece, number) => {
        const group = make("g", this.layer, { class: "piece", "data-piece": number });
        this.picture(group, piece, number);
        group.tint = this.outline(group, piece, "tint");
        group.edge = this.outline(group, piece, "edge");
        group.mark = make("text", group, { class: "mark", "text-anchor": "middle", "dominant-baseline": "central" });
        this.pieces.push(group);
        const ghost = make("g", this.ghosts);
        this.picture(ghost, piece, number);
        this.outline(ghost, piece, "trace");
        this.picture(make("g", this.before), piece, number);
      });
      this.size = Math.max(1, ...pieces.map((piece) => Math.max(piece.width, piece.height)));
    },

    picture(group, piece, number) {
      const { width, height, x, y } = piece;
      const href = `${this.address}/${number}.png`;
      const over = this.grid ? width * 0.004 : 0; // squares overlap a little, so that no seam shines through
      const sides = { width: width + 2 * over, height: height + 2 * over, x: -x - over, y: -y - over };
      make("image", group, { href, ...sides, preserveAspectRatio: "none" });
    },

    outline(group, { width, height, x, y, path }, name) {
      if (path) return make("path", group, { class: name, d: path });
      return make("rect", group, { class: name, width, height, x: -x, y: -y });
    },

    drawGrid(group) {
      const { rows, cols, width, height } = this.grid;
      for (let row = 0; row < rows; row++)
        for (let col = 0; col < cols; col++)
          make("rect", group, { x: (col - cols / 2) * width, y: (row - rows / 2) * height, width, height });
    },

    // What the server sends.

    show(state) {
      if (state.matches) this.matches = state.matches;
      if (this.receive(state)) this.fit();
      if (state.ghost !== undefined) this.showLayer(this.ghosts, state.ghost);
      if (state.before !== undefined) this.showLayer(this.before, state.before);
      this.draw();
    },

    showLayer(layer, places) {
      show(layer, places);
      places?.forEach((place, number) => {
        layer.children[number].style.display = place ? "" : "none";
        if (place) layer.children[number].setAttribute("transform", moved(place));
      });
    },

    draw() {
      if (!this.view) return;
      const { tints = [], hidden = [] } = this.state;
      this.pieces.forEach((group, number) => {
        if (!this.places[number]) return;
        group.setAttribute("transform", moved(this.places[number]));
        group.style.display = hidden[number] ? "none" : "";
        group.tint.style.fill = tints[number] || "transparent";
        const held = this.locked[number];
        const state = ["piece", this.selected.includes(number) && "selected", held && "locked"];
        group.setAttribute("class", state.filter(Boolean).join(" "));
        group.mark.textContent = held ? "lock" : "";
        group.mark.setAttribute("transform", `rotate(${-this.places[number][2]})`);
        group.mark.style.fontSize = `${this.size * 0.28}px`;
      });
      this.drawRing();
      this.drawWipe();
    },

    drawRing() {
      const free = this.selected.filter((number) => !this.locked[number] && this.places[number]);
      const shown = free.length > 0 && !this.state.busy && !(this.grid && free.length > 1) && this.gesture?.mode !== "box";
      show(this.ring, shown);
      if (!shown) return;
      const [x, y] = mean(free.map((number) => this.places[number]));
      const reach = Math.max(
        ...free.map((number) => {
          const { width, height } = this.described[number];
          return Math.hypot(this.places[number][0] - x, this.places[number][1] - y) + Math.hypot(width, height) / 2;
        }),
      );
      const radius = Math.max(reach * 1.04, 34 / this.view.scale);
      const by = this.gesture?.mode === "turn" ? this.gesture.by : 0;
      const angle = ((by - 90) * Math.PI) / 180;
      set(this.circle, { cx: x, cy: y, r: radius });
      set(this.knob, { cx: x + radius * Math.cos(angle), cy: y + radius * Math.sin(angle), r: 13 / this.view.scale });
    },

    drawWipe() {
      const { width, height } = this.$el.getBoundingClientRect();
      const share = this.state.before ? (this.state.wipe ?? 0) : 0;
      const [x0, y0] = this.toWorld([0, 0]);
      const [x1, y1] = this.toWorld([width, height]);
      const at = x0 + share * (x1 - x0);
      const sides = { y: y0, height: Math.max(0, y1 - y0) };
      set(this.left, { ...sides, x: x0, width: Math.max(0, at - x0) });
      set(this.right, { ...sides, x: at, width: Math.max(0, x1 - at) });
      show(set(this.edge, { x1: at, x2: at, y1: y0, y2: y1 }), this.state.before);
    },

    // The camera: pan, zoom, fit.

    resized() {
      if (!this.places.length) return;
      if (this.view && !this.fitted) this.draw();
      else this.fit();
    },

    bounds() {
      const corners = this.places.flatMap(([x, y], number) => {
        const { width, height } = this.described[number];
        const reach = this.grid ? Math.max(width, height) / 2 : Math.hypot(width, height) / 2.3;
        return [[x - reach, y - reach], [x + reach, y + reach]];
      });
      if (this.grid) {
        const { rows, cols, width, height } = this.grid;
        corners.push([(-cols * width) / 2, (-rows * height) / 2], [(cols * width) / 2, (rows * height) / 2]);
      }
      const [xs, ys] = [corners.map((corner) => corner[0]), corners.map((corner) => corner[1])];
      return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    },

    fit() {
      const { width, height } = this.$el.getBoundingClientRect();
      if (!width || !this.places.length) return;
      const [x0, y0, x1, y1] = this.bounds();
      const scale = 0.94 * Math.min(width / (x1 - x0), height / (y1 - y0));
      this.look({ scale, x: (width - scale * (x0 + x1)) / 2, y: (height - scale * (y0 + y1)) / 2 }, true);
    },

    look(view, fitted = false) {
      Object.assign(this, { view, fitted });
      this.world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
      this.draw();
    },

    zoom(factor, at) {
      const { width, height } = this.$el.getBoundingClientRect();
      const scale = Math.min(50, Math.max(0.01, this.view.scale * factor));
      this.enlarge(this.view, scale / this.view.scale, at ?? [width / 2, height / 2]);
    },

    // Shows a view larger; what was at one place of the window is at another.
    enlarge(view, by, from, to = from) {
      this.look({ scale: view.scale * by, x: to[0] - by * (from[0] - view.x), y: to[1] - by * (from[1] - view.y) });
    },

    toWorld([x, y]) {
      const view = this.view ?? { scale: 1, x: 0, y: 0 };
      return [(x - view.x) / view.scale, (y - view.y) / view.scale];
    },

    at(event) {
      const box = this.svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    },

    wheel(event) {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * 0.0015), this.at(event));
    },

    setBoxing(on) {
      this.boxing = on;
    },

    // Fingers and mouse.

    pointerdown(event) {
      if (event.button > 0 || !this.view) return;
      event.preventDefault();
      this.svg.focus({ preventScroll: true });
      this.svg.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, this.at(event));
      if (this.pointers.size === 2) return this.secondFinger();
      if (this.pointers.size > 2) return;
      const start = this.at(event);
      const piece = event.target.closest?.(".piece");
      if (event.target === this.knob) this.gesture = { mode: "turn", start, by: 0, from: this.held() };
      else if (piece && !event.shiftKey && !this.state.busy) this.grab(Number(piece.dataset.piece), start);
      else if ((event.shiftKey || this.boxing) && !(piece && this.state.busy))
        this.gesture = { mode: "box", start, piece: piece && Number(piece.dataset.piece), add: event.shiftKey };
      else this.gesture = { mode: "pan", start, view: { ...this.view } };
    },

    grab(number, start) {
      if (!this.selected.includes(number)) this.select([number]);
      const mode = this.selected.some((one) => this.locked[one]) ? "held" : "drag";
      this.gesture = { mode, start, number, from: this.held() };
      if (mode === "drag") for (const one of this.selected) this.layer.appendChild(this.pieces[one]);
    },

    held() {
      return Object.fromEntries(this.selected.map((number) => [number, [...this.places[number]]]));
    },

    secondFinger() {
      const [one, two] = [...this.pointers.values()];
      const { mode, from } = this.gesture ?? {};
      const twist = mode === "drag" || mode === "turn" || mode === "twist";
      this.gesture = { mode: twist ? "twist" : "pinch", one, two, from, view: { ...this.view }, moved: true, live: twist };
    },

    pointermove(event) {
      if (!this.pointers.has(event.pointerId) || !this.gesture) return;
      event.preventDefault();
      const now = this.at(event);
      this.pointers.set(event.pointerId, now);
      const gesture = this.gesture;
      if (gesture.mode === "twist" || gesture.mode === "pinch") return this.twoFingers(gesture);
      const [dx, dy] = [now[0] - gesture.start[0], now[1] - gesture.start[1]];
      if (!gesture.moved && Math.hypot(dx, dy) < TAP) return;
      gesture.moved = true;
      this[`move_${gesture.mode}`]?.(gesture, now, dx, dy);
    },

    move_pan(gesture, now, dx, dy) {
      this.look({ ...gesture.view, x: gesture.view.x + dx, y: gesture.view.y + dy });
    },

    move_drag(gesture, now, dx, dy) {
      gesture.live = true;
      for (const [number, [x, y, degrees]] of Object.entries(gesture.from))
        this.places[number] = [x + dx / this.view.scale, y + dy / this.view.scale, degrees];
      this.hint(gesture.number);
      this.draw();
    },

    move_turn(gesture, now) {
      gesture.live = true;
      const from = gesture.from;
      const centre = mean(Object.values(from));
      const angle = ([x, y]) => (Math.atan2(y - centre[1], x - centre[0]) * 180) / Math.PI;
      gesture.by = angle(this.toWorld(now)) - angle(this.toWorld(gesture.start));
      for (const number in from) this.places[number] = turned(from[number], centre, gesture.by);
      this.draw();
    },

    move_box(gesture, now) {
      const [a, b] = [this.toWorld(gesture.start), this.toWorld(now)];
      const [x, y] = [Math.min(a[0], b[0]), Math.min(a[1], b[1])];
      const [width, height] = [Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1])];
      set(this.box, { x, y, width, height, visibility: "visible" });
      const inside = this.places.flatMap((place, number) =>
        place[0] > x && place[0] < x + width && place[1] > y && place[1] < y + height ? [number] : [],
      );
      gesture.inside = gesture.add ? [...new Set([...this.selected, ...inside])] : inside;
    },

    twoFingers(gesture) {
      const [one, two] = [...this.pointers.values()];
      const angle = (a, b) => (Math.atan2(b[1] - a[1], b[0] - a[0]) * 180) / Math.PI;
      const [before, now] = [mean([gesture.one, gesture.two]), mean([one, two])];
      if (gesture.mode === "twist") {
        const by = angle(one, two) - angle(gesture.one, gesture.two);
        const [dx, dy] = [(now[0] - before[0]) / this.view.scale, (now[1] - before[1]) / this.view.scale];
        const centre = mean(Object.values(gesture.from));
        for (const number in gesture.from) {
          const [x, y, degrees] = turned(gesture.from[number], centre, by);
          this.places[number] = [x + dx, y + dy, degrees];
        }
        return this.draw();
      }
      const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
      this.enlarge(gesture.view, apart(one, two) / Math.max(1, apart(gesture.one, gesture.two)), before, now);
    },

    pointerup(event) {
      if (!this.pointers.delete(event.pointerId)) return;
      const gesture = this.gesture;
      if (this.pointers.size || !gesture) return;
      this.gesture = null;
      for (const shown of [this.box, this.target, this.partner]) show(shown, false);
      if (!gesture.moved) this.tapped(gesture);
      else if (gesture.mode === "box") this.select(gesture.inside ?? []);
      else if (gesture.live) this.drop(gesture);
      this.draw();
    },

    pointercancel(event) {
      this.pointers.delete(event.pointerId);
      const from = this.gesture?.from;
      if (this.gesture?.live && from) for (const number in from) this.places[number] = from[number];
      this.gesture = null;
      this.draw();
    },

    tapped(gesture) {
      const { number, piece, mode } = gesture;
      if (mode === "box" && piece !== undefined && piece !== null) return this.toggle(piece);
      if (mode === "pan" && this.selected.length) return this.select([]);
      this.tapOn(number);
    },

    drop(gesture) {
      const numbers = Object.keys(gesture.from).map(Number);
      const near = gesture.mode === "drag" && numbers.length === 1 ? this.likely(numbers[0]) : null;
      if (near) this.places[numbers[0]] = near.place;
      this.$emit("move", { pieces: numbers, places: numbers.map((number) => this.places[number]) });
    },

    showSelected() {
      this.draw();
    },

    // Where a piece would go if it were let go of now.

    hint(number) {
      const [x, y] = this.places[number];
      if (this.grid) {
        const { rows, cols, width, height } = this.grid;
        const clamp = (value, most) => Math.min(most - 1, Math.max(0, Math.round(value)));
        const col = clamp(x / width + (cols - 1) / 2, cols);
        const row = clamp(y / height + (rows - 1) / 2, rows);
        set(this.target, { x: (col - cols / 2) * width, y: (row - rows / 2) * height, width, height });
        return show(this.target, true);
      }
      const near = Object.keys(this.gesture.from).length === 1 ? this.likely(number) : null;
      show(this.partner, near);
      if (near) set(this.partner, { d: this.described[near.other].path, transform: moved(this.places[near.other]) });
    },

    // The likeliest match of a piece with another one that has it about where it is: [piece, other, x, y, degrees, sure].
    likely(number) {
      const mine = this.places[number];
      let best = null;
      for (const [piece, other, dx, dy, by, sure] of this.matches) {
        if (piece !== number || !this.places[other]) continue;
        const [x, y, degrees] = this.places[other];
        const place = turned([x + dx, y + dy, by], [x, y], degrees);
        const far = Math.hypot(place[0] - mine[0], place[1] - mine[1]);
        const close = far < NEAR * this.size && Math.abs(within(place[2] - mine[2])) < STRAIGHT;
        if (close && (!best || sure > best.sure)) best = { other, place, sure };
      }
      return best;
    },

    // Keys.

    turnKey(back) {
      this.$emit("act", { name: back ? "turn back" : "turn" });
    },

    nudge([dx, dy], far) {
      if (this.state.busy) return;
      const step = this.grid ? [this.grid.width, this.grid.height] : Array(2).fill(this.size * (far ? 0.25 : 0.02));
      const places = this.selected.map((number) => {
        const [x, y, degrees] = this.places[number];
        return [x + dx * step[0], y + dy * step[1], degrees];
      });
      this.$emit("move", { pieces: this.selected, places });
    },
  },
};
