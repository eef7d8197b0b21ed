/**
 * Checks what comes in over the admin API: small parsers that return a value of the right type or name what is wrong.
 *
 * Used by `behaviour.ts` and `admin.ts`. A parser is a function; `record` and `list` put them together.
 */

export type Parse<Value> = (value: unknown) => Value;

export interface Field<Value> {
  parse: Parse<Value>;
  /** Undefined: it must be given. */
  initial: Value | undefined;
}

/** Input that does not fit, with the path to it. Becomes a 400. */
export class SchemaError extends Error {}

const LIST_LIMIT = 10_000;

export function field<Value>(parse: Parse<Value>, initial: NoInfer<Value>): Field<Value> {
  return { parse, initial };
}

export function required<Value>(parse: Parse<Value>): Field<Value> {
  return { parse, initial: undefined };
}

export const flag: Parse<boolean> = (value) => {
  if (typeof value !== "boolean") throw new SchemaError("must be true or false");
  return value;
};

export function number(least: number, most: number): Parse<number> {
  return (value) => {
    if (typeof value !== "number" || !(value >= least && value <= most)) {
      throw new SchemaError(`must be a number from ${least} to ${most}`);
    }
    return value;
  };
}

export function integer(least: number, most: number): Parse<number> {
  return (value) => {
    if (!Number.isSafeInteger(value)) throw new SchemaError("must be a whole number");
    return number(least, most)(value);
  };
}

export function string(check: (value: string) => boolean = () => true, what = "text"): Parse<string> {
  return (value) => {
    if (typeof value !== "string" || !check(value)) throw new SchemaError(`must be ${what}`);
    return value;
  };
}

export function oneOf<const Value extends string>(...allowed: Value[]): Parse<Value> {
  return (value) => {
    if (!allowed.includes(value as Value)) throw new SchemaError(`must be one of ${allowed.join(", ")}`);
    return value as Value;
  };
}

export function nullable<Value>(parse: Parse<Value>): Parse<Value | null> {
  return (value) => (value === null ? null : parse(value));
}

export function list<Value>(parse: Parse<Value>): Parse<Value[]> {
  return (value) => {
    if (!Array.isArray(value) || value.length > LIST_LIMIT) throw new SchemaError("must be a list");
    return value.map((one, index) => within(String(index), () => parse(one)));
  };
}

/** An object with these fields and no others; what is left out gets its initial value. */
export function record<Fields extends Record<string, Field<unknown>>>(
  fields: Fields,
): Parse<{ -readonly [Name in keyof Fields]: ReturnType<Fields[Name]["parse"]> }> {
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SchemaError("must be an object");
    const given = value as Record<string, unknown>;
    const extra = Object.keys(given).find((name) => !(name in fields));
    if (extra !== undefined) throw new SchemaError(`${extra}: no such field`);
    const parsed = Object.entries(fields).map(([name, { parse, initial }]) => {
      const one = given[name];
      if (one === undefined && initial === undefined) throw new SchemaError(`${name}: missing`);
      return [name, one === undefined ? structuredClone(initial) : within(name, () => parse(one))];
    });
    return Object.fromEntries(parsed) as { [Name in keyof Fields]: ReturnType<Fields[Name]["parse"]> };
  };
}

/** Attributes of a node: whatever is given, as text. */
export const attributes: Parse<Record<string, string>> = (value) => {
  if (typeof value !== "object" || value === null) throw new SchemaError("must be an object");
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, String(one)]));
};

/** Put the name of the part before the complaint. */
export function within<Value>(name: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SchemaError) throw new SchemaError(`${name}: ${error.message}`);
    throw error;
  }
}
