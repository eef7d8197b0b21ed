/** A list that keeps its newest entries, under indexes that never change: how the admin API pages through what happened. */

export class Recent<Entry> {
  private readonly kept: Entry[] = [];
  private dropped = 0;

  constructor(private readonly limit: number) {}

  add(entry: Entry): void {
    this.kept.push(entry);
    // In blocks: taking one off the front of a long array each time would copy all of it each time.
    if (this.kept.length >= 2 * this.limit) this.dropped += this.kept.splice(0, this.limit).length;
  }

  /** Entries from this index on, and the index to ask with next. */
  after(index: number, most = Infinity): { entries: Entry[]; next: number } {
    const from = Math.max(0, index - this.dropped);
    const entries = this.kept.slice(from, from + most);
    return { entries, next: this.dropped + from + entries.length };
  }

  get length(): number {
    return this.dropped + this.kept.length;
  }

  clear(): void {
    this.kept.length = 0;
    this.dropped = 0;
  }
}
