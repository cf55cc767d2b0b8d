// A place to drop files on, or to click and choose them; each is sent by itself, as it is, to `address`.

export default {
  template: `<label class="da-drop" :class="{over}" @dragover.prevent="over = true" @dragleave="over = false"
      @drop.prevent="over = false; send([...$event.dataTransfer.files])">
    <input type="file" multiple aria-label="Choose files" :disabled="sending" @change="send([...$event.target.files]); $event.target.value = ''">
    <span class="da-drop-icon" aria-hidden="true">⬆</span>
    <b>{{ sending ? told : "Drop files here, or click to choose" }}</b>
    <span>Photos, pieces (PNG, JPEG), fragments (PLY, OBJ, STL, GLB), or a zip file</span>
    <button v-if="sending" type="button" @click.prevent="cancel">Cancel</button>
  </label>`,
  props: { address: String },
  data: () => ({ over: false, sending: false, told: "" }),

  methods: {
    async send(files) {
      this.sending = true;
      this.cancelled = false;
      for (const [index, file] of files.entries()) {
        if (this.cancelled) break;
        const which = files.length > 1 ? `${index + 1} of ${files.length}, ` : "";
        const refused = await this.sendOne(file, `Sending ${which}${file.name}`);
        if (refused) this.$emit("refused", { text: refused });
      }
      this.sending = false;
      this.$emit("sent", {});
    },

    sendOne(file, told) {
      return new Promise((done) => {
        const request = (this.request = new XMLHttpRequest());
        request.open("POST", `${this.address}?name=${encodeURIComponent(file.name)}`);
        request.upload.onprogress = ({ loaded, total }) => (this.told = `${told}, ${Math.round((100 * loaded) / total)} %`);
        request.onload = () => done(request.status === 200 ? "" : request.responseText);
        request.onerror = () => done(`${file.name}: was not taken; is it too large?`);
        request.onabort = () => done("");
        this.told = told;
        request.send(file);
      });
    },

    cancel() {
      this.cancelled = true;
      this.request?.abort();
    },
  },
};
