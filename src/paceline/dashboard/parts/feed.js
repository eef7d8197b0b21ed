// What happened, newest first: a mark, a sentence, how long ago.
import { everySecond, exact, relative } from "/static/times.js";

export default {
  template: `
    <div class="feed-box">
      <div class="feed-scroll" :class="{ 'feed--short': short }" tabindex="0" role="region" :aria-label="label"><ol class="feed">
        <li v-for="item in items" :key="item.id" :class="'feed--' + (item.tone || 'plain')">
          <span class="feed-text" dir="auto">{{ item.text }}<template v-if="item.href"> · <a :href="item.href">{{ item.link }}</a></template></span>
          <time :datetime="new Date(item.at).toISOString()" :title="exact(item.at)">{{ relative(item.at, now) }}</time>
          <span v-if="item.note" class="feed-note" dir="auto">{{ item.note }}</span>
        </li>
      </ol></div>
      <button v-if="more" type="button" class="button button--small feed-more" @click="$emit('more')">Show more</button>
    </div>`,
  props: { items: Array, more: Boolean, short: Boolean, label: String },
  data: () => ({ now: Date.now() }),
  methods: { exact, relative },
  mounted() {
    this.stop = everySecond((now) => (this.now = now));
  },
  unmounted() {
    this.stop();
  },
};
