/**
 * Whether two ways to write a number mean the same one, as `paceline.domain.numbers` has it: with its trunk 0 kept, or
 * with a mobile digit that WhatsApp's own ids have or lack.
 */

// Of all others with fewer than three digits: 1 and 7.
const TWO_DIGITS = /^(2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;
// There the 0 belongs to the number.
const ITALY = "39";
const BRAZIL = "55";
/** Where in the national number it stands, and which it is. */
const MOBILE_DIGIT: Readonly<Record<string, readonly [number, string]>> = {
  "52": [0, "1"],
  "54": [0, "9"],
  [BRAZIL]: [2, "9"],
};
// Digits of a national number that has it.
const LONG = 11;
// What a country that gives all its numbers another length leaves of them.
const KEPT_DIGITS = 7;

export function isSameNumber(one: string, other: string): boolean {
  return shortest(one) === shortest(other);
}

/**
 * Whether two numbers certainly differ. A country that makes its numbers longer (Benin, Côte d'Ivoire) leaves their ends
 * as they are, and WhatsApp's ids may be the old ones for years: those we cannot tell apart.
 */
export function isAnotherNumber(one: string, other: string): boolean {
  if (isSameNumber(one, other)) return false;
  const isOfOneEnd = one.slice(-KEPT_DIGITS) === other.slice(-KEPT_DIGITS);
  return !isOfOneEnd || one.length === other.length || countryOf(one) !== countryOf(other);
}

function countryOf(digits: string): string {
  return /^[17]/.exec(digits)?.[0] ?? TWO_DIGITS.exec(digits)?.[0] ?? digits.slice(0, 3);
}

function shortest(digits: string): string {
  const country = countryOf(digits);
  const whole = digits.slice(country.length);
  const national = country === ITALY ? whole : whole.replace(/^0/, "");
  return country + withoutMobileDigit(country, national);
}

/** Mexico's 1, Argentina's 9 and Brazil's ninth digit. */
function withoutMobileDigit(country: string, national: string): string {
  const [at, digit] = MOBILE_DIGIT[country] ?? [0, ""];
  if (national.length !== LONG || !digit || national[at] !== digit) return national;
  const short = national.slice(0, at) + national.slice(at + 1);
  // Without it this would be a landline; only mobile numbers got the ninth digit.
  return country === BRAZIL && !/[6-9]/.test(short[2] ?? "") ? national : short;
}
