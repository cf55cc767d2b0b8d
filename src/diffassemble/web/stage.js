// What the flat board and the scene of fragments have in common: the state, selecting, double taps, and keys.

export const TAP = 5; // pixels that a finger may slip while it taps
const TWICE = 400; // milliseconds between the taps of a double tap

export const stage = {
  props: { address: String },

  unmounted() {
    this.observer?.disconnect();
  },

  methods: {
    begin() {
      Object.assign(this, { places: [], locked: [], selected: [], state: {}, pointers: new Map() });
    },

    listen(element, ...names) {
      for (const name of names) element.addEventListener(name, (event) => this[name](event), { passive: false });
    },

    async described() {
      return (await fetch(`${this.address}/board.json`)).json();
    },

    // Keeps what the server sends; places wait while a piece is in hand. Returns whether all are to be shown anew.
    receive(state) {
      Object.assign(this.state, state);
      if (state.locked) this.locked = state.locked;
      if (state.selected) this.selected = state.selected;
      if (!state.places || this.gesture?.live) return false;
      const first = !this.places.length;
      this.places = state.places.map((place) => [...place]);
      return first || Boolean(state.fit);
    },

    select(numbers) {
      this.selected = numbers;
      this.$emit("select", { pieces: numbers });
      this.showSelected();
    },

    toggle(number) {
      const there = this.selected.includes(number);
      this.select(there ? this.selected.filter((one) => one !== number) : [...this.selected, number]);
    },

    selectNext(by) {
      const count = this.places.length;
      const now = this.selected.length ? this.selected[this.selected.length - 1] : by > 0 ? -1 : 0;
      this.select([(now + by + count) % count]);
    },

    tapOn(number) {
      const now = performance.now();
      const twice = number !== undefined && this.last?.number === number && now - this.last.when < TWICE;
      this.last = twice ? null : { number, when: now };
      if (twice) this.$emit("lock", { pieces: [number] });
    },

    // `nudge` takes steps to the right and down, `turnKey` turns back with Shift.
    keydown(event) {
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.ctrlKey || event.metaKey) {
        if (key === "z") this.$emit("act", { name: event.shiftKey ? "redo" : "undo" });
        else if (key === "y") this.$emit("act", { name: "redo" });
        else if (key === "a") this.select(this.places.map((_, number) => number));
        else return;
      } else if (arrows[key]) this.selected.length ? this.nudge(arrows[key], event.shiftKey) : this.selectNext(1);
      else if (key === "r") this.turnKey(event.shiftKey);
      else if (key === "l") this.$emit("act", { name: "lock" });
      else if (key === "." || key === ",") this.selectNext(key === "." ? 1 : -1);
      else if (key === "Escape") this.select([]);
      else if (key === "+" || key === "-") this.zoom(key === "+" ? 1.25 : 0.8);
      else if (key === "0") this.fit();
      else return;
      event.preventDefault();
    },
  },
};
