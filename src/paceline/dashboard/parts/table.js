// Rows of cells, each of a kind that knows how to show itself. Sorting and paging are the server's: we only ask.
import { everySecond, exact, relative } from "/static/times.js";

const number = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString());

const Cell = {
  props: { value: null, kind: String, now: Number },
  emits: ["act"],
  methods: {
    number, relative, exact,
    filled(part) {
      return Math.min(100, (100 * part.value) / this.of.max);
    },
  },
  computed: {
    of() {
      return this.value !== null && typeof this.value === "object" ? this.value : { text: this.value };
    },
  },
  template: `
    <template v-if="kind === 'number'">{{ number(value) }}</template>
    <template v-else-if="kind === 'next'">
      <time v-if="value" :datetime="new Date(value).toISOString()" :title="exact(value)">{{ value > now ? relative(value, now) : "now" }}</time>
      <template v-else>–</template>
    </template>
    <template v-else-if="kind === 'when'">
      <time v-if="value" :datetime="new Date(value).toISOString()" :title="exact(value)">{{ relative(value, now) }}</time>
      <template v-else>–</template>
    </template>
    <span v-else-if="kind === 'state'" class="chip" :class="'chip--' + of.tone" :title="of.title">{{ of.text }}</span>
    <span v-else-if="kind === 'bar'" class="meter" :title="of.title">
      <span class="meter-text">{{ of.text }}</span>
      <span v-if="of.max" class="meter-track" aria-hidden="true">
        <span v-for="part in of.parts || [of]" class="meter-fill" :class="'meter-fill--' + (part.tone || 'plain')"
          :style="{ width: filled(part) + '%' }"></span>
      </span>
    </span>
    <span v-else-if="kind === 'actions'" class="row-actions">
      <button v-for="action in value || []" :key="action.name" type="button" class="button button--small"
        :class="action.danger ? 'button--danger' : ''" :disabled="!!action.why" :title="action.why || action.title"
        @click.stop="$emit('act', action.name)">{{ action.label }}</button>
    </span>
    <a v-else-if="of.href" :href="of.href" :title="of.title" dir="auto">{{ of.text }}</a>
    <span v-else :title="of.title" dir="auto" :class="of.tone ? 'tone--' + of.tone : ''">{{ of.text ?? "–" }}</span>
    <small v-if="of.note" class="cell-note" dir="auto">{{ of.note }}</small>`,
};

export default {
  components: { Cell },
  template: `
    <div class="table-box">
      <div class="table-scroll" tabindex="0" role="region" :aria-label="caption">
      <table class="table" :class="{ 'table--wide': wide }">
        <caption class="sr-only">{{ caption }}</caption>
        <thead><tr>
          <th v-if="picks" class="pick"><input type="checkbox" aria-label="All on this page" :checked="allPicked" @change="pickAll"></th>
          <th v-for="column in columns" :key="column.name" scope="col" :class="head(column)" :aria-sort="sorted(column)">
            <button v-if="column.sort" type="button" class="sort" @click="ask(column)">{{ column.label }}<span
              class="sort-mark" aria-hidden="true">{{ mark(column) }}</span></button>
            <span v-else :class="column.quiet ? 'sr-only' : ''">{{ column.label }}</span>
          </th>
        </tr></thead>
        <tbody>
          <tr v-for="row in rows" :key="row.id" :class="row.tone ? 'row--' + row.tone : ''">
            <td v-if="picks" class="pick"><input type="checkbox" :aria-label="'Choose ' + row.id" :checked="picked.includes(row.id)" @change="pick(row.id)"></td>
            <td v-for="column in columns" :key="column.name" :class="head(column)" :data-label="column.label">
              <Cell :value="row[column.name]" :kind="column.kind" :now="now" @act="(name) => $emit('act', { name, id: row.id })" />
            </td>
          </tr>
          <tr v-if="!rows.length"><td class="table-none" :colspan="columns.length + (picks ? 1 : 0)">{{ none }}</td></tr>
        </tbody>
      </table>
      </div>
      <div v-if="note || back || more" class="table-foot">
        <span role="status">{{ note }}</span>
        <span v-if="back || more" class="pager">
          <button type="button" class="button button--small" :disabled="!back" @click="$emit('page', -1)">Back</button>
          <button type="button" class="button button--small" :disabled="!more" @click="$emit('page', 1)">Next</button>
        </span>
      </div>
    </div>`,
  props: {
    caption: String, columns: Array, rows: Array, none: String, note: String, sort: String, descending: Boolean,
    back: Boolean, more: Boolean, picks: Boolean, picked: Array, wide: Boolean,
  },
  data: () => ({ now: Date.now() }),
  computed: {
    allPicked() {
      return this.rows.length > 0 && this.rows.every((row) => this.picked.includes(row.id));
    },
  },
  methods: {
    head(column) {
      return [column.kind === "number" ? "right" : "", column.classes || ""];
    },
    sorted(column) {
      return column.sort && column.name === this.sort ? (this.descending ? "descending" : "ascending") : null;
    },
    mark(column) {
      return column.name !== this.sort ? "" : this.descending ? " ↓" : " ↑";
    },
    ask(column) {
      const descending = column.name === this.sort ? !this.descending : column.first === "down";
      this.$emit("sort", { by: column.name, descending });
    },
    pick(id) {
      this.$emit("pick", this.picked.includes(id) ? this.picked.filter((one) => one !== id) : [...this.picked, id]);
    },
    pickAll() {
      const here = this.rows.map((row) => row.id);
      this.$emit("pick", this.allPicked ? this.picked.filter((id) => !here.includes(id)) : [...new Set([...this.picked, ...here])]);
    },
  },
  mounted() {
    this.stop = everySecond((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
};
