/** One number in several notations is one number; two numbers are two. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAnotherNumber, isSameNumber } from "../../src/numbers.js";

for (const [name, one, other, isSame] of [
  ["the same digits", "972541234567", "972541234567", true],
  ["a trunk 0 that was kept", "9720541234567", "972541234567", true],
  ["Brazil’s ninth digit", "5511987654321", "551187654321", true],
  ["Brazil’s ninth digit and a trunk 0", "5501187654321", "5511987654321", true],
  ["Argentina’s 9", "541123456789", "5491123456789", true],
  ["Mexico’s 1", "525512345678", "5215512345678", true],
  ["another number", "972541234567", "972541234568", false],
  ["the same national number elsewhere", "972541234567", "971541234567", false],
  ["a Brazilian landline and a mobile number", "551133334444", "5511933334444", false],
  ["Italy, where the 0 belongs to the number", "390612345678", "39612345678", false],
  ["a 1 that is no mobile digit", "12025550123", "2025550123", false],
  ["a 9 in another place", "5411923456789", "541123456789", false],
  ["no number at all", "972541234567", "", false],
] as const) {
  test(`${name}: ${isSame ? "one number" : "two"}`, () => {
    assert.equal(isSameNumber(one, other), isSame);
    assert.equal(isSameNumber(other, one), isSame);
  });
}

for (const [name, one, other, isAnother] of [
  ["the same digits", "972541234567", "972541234567", false],
  ["Brazil’s ninth digit", "5511987654321", "551187654321", false],
  ["Benin, where all got 01", "22997123456", "2290197123456", false],
  ["Côte d’Ivoire, where each network got its own two digits", "22507123456", "2250707123456", false],
  ["Vietnam, where four digits became three", "841201234567", "84701234567", false],
  ["Italy, with and without its 0", "390612345678", "39612345678", false],
  ["another number", "22997123456", "2290197123457", true],
  ["as many digits, but of another network", "972541234567", "972521234567", true],
  ["the same national number elsewhere", "22997123456", "2280197123456", true],
  ["no number at all", "972541234567", "", true],
] as const) {
  test(`${name}: ${isAnother ? "certainly another" : "perhaps the same"}`, () => {
    assert.equal(isAnotherNumber(one, other), isAnother);
    assert.equal(isAnotherNumber(other, one), isAnother);
  });
}
