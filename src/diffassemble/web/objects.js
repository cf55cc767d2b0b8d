// Fragments in space: orbit, drag in the plane of the view, turn, lock by a double click, explode, cut open, measure.
// A place is twelve numbers: the rotation row by row, then the origin; y is up. objects.py is the other side.

import { OrbitControls, THREE } from "nicegui-scene";
import { stage, TAP } from "/stage.js";

const FROM = new THREE.Vector3(0.45, 0.55, 1).normalize(); // where the eye stands at first
const [SELECTED, LOCKED, NOTHING] = [0x99104a, 0x0a6b3c, 0x000000];

function matrix(place) {
  const [a, b, c, d, e, f, g, h, i, x, y, z] = place;
  return new THREE.Matrix4().set(a, b, c, x, d, e, f, y, g, h, i, z, 0, 0, 0, 1);
}

const origin = (place) => new THREE.Vector3(...place.slice(9));

function mean(points) {
  return points.reduce((sum, point) => sum.add(point), new THREE.Vector3()).divideScalar(Math.max(1, points.length));
}

function place(matrix4) {
  const m = matrix4.elements;
  return [m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10], m[12], m[13], m[14]];
}

export default {
  template: `<div class="da-board"><canvas tabindex="0" role="application"
    aria-label="Scene. Arrow keys move the selected fragment, with Shift they turn it, R turns it, L locks it, comma and full stop select others."></canvas><output></output></div>`,
  mixins: [stage],

  async mounted() {
    this.begin();
    this.nodes = [];
    this.turning = this.measuring = false;
    this.canvas = this.$el.querySelector("canvas");
    this.output = this.$el.querySelector("output");
    this.renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
    this.renderer.localClippingEnabled = true;
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(35, 1, 0.01, 100);
    this.camera.position.copy(FROM).multiplyScalar(3);
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x8a8078, 1.6), this.camera);
    const lamp = new THREE.DirectionalLight(0xffffff, 1.8);
    lamp.position.set(-1, 1.5, 1);
    this.camera.add(lamp);
    this.ruler = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xdc1e6e, depthTest: false }));
    this.ruler.renderOrder = 2;
    this.scene.add(this.ruler);
    this.plane = new THREE.Plane();
    // Ours come first, so that the camera rests while a fragment is dragged.
    this.listen(this.canvas, "pointerdown", "pointermove", "pointerup", "pointercancel", "keydown");
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.addEventListener("change", () => this.draw());
    const { unit, pieces } = await this.described();
    this.unit = unit;
    this.nodes = await Promise.all(pieces.map((piece, number) => this.load(piece, number)));
    this.scene.add(...this.nodes);
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(this.$el);
    this.resized();
    this.$emit("ready", {});
  },

  unmounted() {
    this.renderer?.dispose();
  },

  methods: {
    // Where fragments nearly touch, their surfaces are coloured by the gap: blue where there is none, red where it is wide.
    async colourGaps(token) {
      const levels = new Uint8Array(await (await fetch(`${this.address}/gaps.bin?${token}`)).arrayBuffer());
      let start = 0;
      for (const node of this.nodes) {
        const count = node.geometry.getAttribute("position").count;
        const [colours, colour] = [new Float32Array(3 * count), new THREE.Color()];
        for (let i = 0; i < count; i++) {
          const level = levels[start + i];
          if (level === 255) colour.setRGB(0.55, 0.55, 0.53);
          else colour.setHSL(0.6 * (1 - level / 254), 0.8, 0.5);
          colour.toArray(colours, 3 * i);
        }
        node.gaps = new THREE.BufferAttribute(colours, 3);
        start += count;
      }
      if (this.state.gaps === token) this.paint();
    },

    async load(piece, number) {
      const content = await (await fetch(`${this.address}/${number}.shape`)).arrayBuffer();
      const [corners, faces, coloured] = new Uint32Array(content, 0, 3);
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(content, 12, 3 * corners), 3));
      const start = 12 + 12 * corners;
      if (coloured) {
        const levels = new Uint8Array(content, start + 12 * faces, 3 * corners);
        const linear = Float32Array.from(levels, (level) => (level / 255) ** 2.2);
        geometry.own = new THREE.BufferAttribute(linear, 3);
      }
      const look = { side: THREE.DoubleSide, clippingPlanes: [] };
      let node;
      if (faces) {
        geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(content, start, 3 * faces), 1));
        node = new THREE.Mesh(geometry, new THREE.MeshStandardMaterial({ ...look, flatShading: true, roughness: 0.9 }));
      } else node = new THREE.Points(geometry, new THREE.PointsMaterial({ size: 0.012, clippingPlanes: [] }));
      node.matrixAutoUpdate = node.visible = false;
      Object.assign(node, { piece, number, colour: new THREE.Color().setRGB(...piece.colour, THREE.SRGBColorSpace) });
      return node;
    },

    // What the server sends.

    show(state) {
      if (state.gaps) this.colourGaps(state.gaps);
      if (this.receive(state)) this.fit();
      this.arrange();
    },

    // Where fragments are drawn: further apart, the more the whole is exploded.
    arrange() {
      const centre = mean(this.places.map(origin));
      const apart = this.state.explode ?? 0;
      this.nodes.forEach((node, number) => {
        if (!this.places[number]) return;
        node.shift = origin(this.places[number]).sub(centre).multiplyScalar(apart);
        if (this.gesture?.live && this.selected.includes(number)) return;
        node.matrix.copy(matrix(this.places[number])).premultiply(new THREE.Matrix4().makeTranslation(node.shift));
        node.matrixWorldNeedsUpdate = true;
      });
      this.paint();
    },

    paint() {
      const { tints = [], hidden = [], own = true, section = 0, gaps = null } = this.state;
      this.nodes.forEach((node, number) => {
        const material = node.material;
        const painted = gaps ? node.gaps : own ? node.geometry.own : null;
        const natural = Boolean(painted) && !tints[number];
        if (natural) node.geometry.setAttribute("color", painted);
        if (material.vertexColors !== natural) Object.assign(material, { vertexColors: natural, needsUpdate: true });
        if (tints[number]) material.color.set(tints[number]);
        else if (natural) material.color.set(0xffffff);
        else material.color.copy(node.colour);
        material.emissive?.set(this.selected.includes(number) ? SELECTED : this.locked[number] ? LOCKED : NOTHING);
        node.visible = !hidden[number] && Boolean(this.places[number]);
        material.clippingPlanes = section > 0 ? [this.plane] : [];
      });
      if (section > 0) this.cutOpen(section);
      this.draw();
    },

    // A plane that takes away what is nearest to the eye.
    cutOpen(share) {
      const ahead = this.camera.getWorldDirection(new THREE.Vector3());
      const at = mean(this.places.map(origin)).addScaledVector(ahead, this.reach() * (2 * share - 1));
      this.plane.setFromNormalAndCoplanarPoint(ahead, at);
    },

    reach() {
      const centre = mean(this.places.map(origin));
      return Math.max(
        0.1,
        ...this.nodes.map((node, number) => {
          node.geometry.boundingSphere ?? node.geometry.computeBoundingSphere();
          return origin(this.places[number] ?? Array(12).fill(0)).distanceTo(centre) + node.geometry.boundingSphere.radius;
        }),
      );
    },

    fit() {
      const centre = mean(this.places.map(origin));
      const away = this.reach() / Math.sin((this.camera.fov * Math.PI) / 360) / Math.min(1, this.camera.aspect);
      this.controls.target.copy(centre);
      this.camera.position.copy(centre).addScaledVector(FROM, away);
      this.controls.update();
      this.draw();
    },

    zoom(factor) {
      this.camera.position.sub(this.controls.target).divideScalar(factor).add(this.controls.target);
      this.controls.update();
      this.draw();
    },

    resized() {
      const { width, height } = this.$el.getBoundingClientRect();
      if (!width || !height) return;
      this.renderer.setPixelRatio(Math.min(2, window.devicePixelRatio));
      this.renderer.setSize(width, height);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
      this.draw();
    },

    // Once a frame at most, and only if something changed.
    draw() {
      this.waiting ??= requestAnimationFrame(() => {
        this.waiting = null;
        this.renderer.render(this.scene, this.camera);
      });
    },

    setTurning(on) {
      this.turning = on;
    },

    setMeasuring(on) {
      this.measuring = on;
      this.points = [];
      this.ruler.geometry.setFromPoints([]);
      this.output.textContent = on ? "Click two points." : "";
      this.draw();
    },

    // Fingers and mouse.

    hit(event) {
      const { left, top, width, height } = this.canvas.getBoundingClientRect();
      const at = [((event.clientX - left) / width) * 2 - 1, 1 - ((event.clientY - top) / height) * 2];
      const ray = new THREE.Raycaster();
      ray.params.Points.threshold = 0.015;
      ray.setFromCamera(new THREE.Vector2(...at), this.camera);
      const cut = (this.state.section ?? 0) > 0;
      const seen = ray.intersectObjects(this.nodes.filter((node) => node.visible));
      return { ray: ray.ray, found: seen.find(({ point }) => !cut || this.plane.distanceToPoint(point) >= 0) };
    },

    pointerdown(event) {
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      if (this.pointers.size > 1) return this.secondFinger();
      if (event.button > 0) return;
      this.canvas.focus({ preventScroll: true });
      const { found } = this.hit(event);
      const start = [event.clientX, event.clientY];
      if (!found || this.measuring || this.state.busy) {
        this.gesture = { mode: "look", start, point: found?.point };
        return;
      }
      const number = found.object.number;
      if (event.shiftKey && !this.turning) this.toggle(number);
      else if (!this.selected.includes(number)) this.select([number]);
      const held = this.selected.some((one) => this.locked[one]);
      const mode = held ? "held" : this.turning ? "turn" : "drag";
      this.gesture = { mode, start, number, point: found.point, from: this.matrices() };
      this.controls.enabled = false;
      this.canvas.setPointerCapture(event.pointerId);
    },

    matrices() {
      return new Map(this.selected.map((number) => [number, this.nodes[number].matrix.clone()]));
    },

    secondFinger() {
      const gesture = this.gesture;
      if (gesture?.mode !== "drag" && gesture?.mode !== "turn") return;
      this.gesture = { ...gesture, mode: "twist", from: this.matrices(), fingers: [...this.pointers.values()], moved: true };
    },

    pointermove(event) {
      const gesture = this.gesture;
      if (!this.pointers.has(event.pointerId) || !gesture) return;
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
      const [dx, dy] = [event.clientX - gesture.start[0], event.clientY - gesture.start[1]];
      if (!gesture.moved && Math.hypot(dx, dy) < TAP) return;
      gesture.moved = true;
      if (gesture.mode === "drag") this.follow(gesture, this.shift(gesture, event));
      else if (gesture.mode === "turn") this.follow(gesture, this.turnBy(gesture.from, dx * 0.01, dy * 0.01, 0));
      else if (gesture.mode === "twist") {
        const angle = ([a, b]) => Math.atan2(b[1] - a[1], b[0] - a[0]);
        const by = angle([...this.pointers.values()]) - angle(gesture.fingers);
        this.follow(gesture, this.turnBy(gesture.from, 0, 0, by));
      }
    },

    // How far the pointer has come in the plane that faces the eye, as a motion.
    shift(gesture, event) {
      const ahead = this.camera.getWorldDirection(new THREE.Vector3());
      const plane = new THREE.Plane().setFromNormalAndCoplanarPoint(ahead, gesture.point);
      const at = this.hit(event).ray.intersectPlane(plane, new THREE.Vector3()) ?? gesture.point;
      return new THREE.Matrix4().makeTranslation(at.sub(gesture.point));
    },

    // A turn about the middle of some fragments: about the upward, sideward and forward axes of the view, in radians.
    turnBy(from, across, down, round) {
      const centre = mean([...from.values()].map((one) => new THREE.Vector3().setFromMatrixPosition(one)));
      const [right, up, back] = [0, 1, 2].map((axis) => new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, axis));
      const turn = new THREE.Quaternion().setFromAxisAngle(up, across);
      turn.multiply(new THREE.Quaternion().setFromAxisAngle(right, down));
      turn.multiply(new THREE.Quaternion().setFromAxisAngle(back, -round));
      return new THREE.Matrix4()
        .makeTranslation(centre)
        .multiply(new THREE.Matrix4().makeRotationFromQuaternion(turn))
        .multiply(new THREE.Matrix4().makeTranslation(centre.clone().negate()));
    },

    follow(gesture, motion) {
      gesture.live = true;
      for (const [number, start] of gesture.from) {
        this.nodes[number].matrix.copy(start).premultiply(motion);
        this.nodes[number].matrixWorldNeedsUpdate = true;
      }
      this.draw();
    },

    pointerup(event) {
      this.pointers.delete(event.pointerId);
      const gesture = this.gesture;
      if (this.pointers.size || !gesture) return;
      this.gesture = null;
      this.controls.enabled = true;
      if (gesture.live) return this.send([...gesture.from.keys()]);
      if (!gesture.moved) this.tapped(gesture);
    },

    pointercancel(event) {
      this.pointers.delete(event.pointerId);
      this.gesture = null;
      this.controls.enabled = true;
      this.arrange();
    },

    tapped({ mode, number, point }) {
      if (this.measuring) return point && this.measure(point);
      if (mode === "look") return this.selected.length && this.select([]);
      this.tapOn(number);
    },

    measure(point) {
      this.points = this.points.length === 2 ? [point] : [...this.points, point];
      this.ruler.geometry.setFromPoints(this.points);
      const long = this.points.length === 2 ? this.points[0].distanceTo(this.points[1]) * this.unit : null;
      this.output.textContent = long === null ? "Click the second point." : `${long.toPrecision(4)} units of the files`;
      this.draw();
    },

    // Reports where fragments are now, as if nothing were exploded.
    send(numbers) {
      const places = numbers.map((number) => {
        const node = this.nodes[number];
        return place(new THREE.Matrix4().makeTranslation(node.shift.clone().negate()).multiply(node.matrix));
      });
      this.$emit("move", { pieces: numbers, places });
    },

    showSelected() {
      this.paint();
    },

    // Keys.

    turnKey(back) {
      this.turn(back ? -15 : 15);
    },

    free() {
      return this.selected.length && !this.state.busy && !this.selected.some((number) => this.locked[number]);
    },

    turn(degrees) {
      if (!this.free()) return;
      const from = this.matrices();
      this.follow({ from }, this.turnBy(from, 0, 0, (degrees * Math.PI) / 180));
      this.send([...from.keys()]);
    },

    nudge([dx, dy], turning) {
      if (!this.free()) return;
      const from = this.matrices();
      const [right, up] = [0, 1].map((axis) => new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, axis));
      const by = right.multiplyScalar(0.01 * dx).addScaledVector(up, -0.01 * dy);
      const motion = turning ? this.turnBy(from, dx * 0.1, dy * 0.1, 0) : new THREE.Matrix4().makeTranslation(by);
      this.follow({ from }, motion);
      this.send([...from.keys()]);
    },
  },
};
