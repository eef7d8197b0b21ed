/**
 * Message ids against the vectors of the Python worker (tests/domain/test_ids.py and values computed by domain.ids).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { whatsappId } from "../../src/ids.js";

const VECTORS: readonly (readonly [string, string])[] = [
  ["01JAR7Z3V5W8Q2M4N6P8R0T2V4:0", "3EB094773A396AE4D7AB31"],
  ["01ARZ3NDEKTSV4RRFFQ69G5FAV:0", "3EB0040408A80C54C9C859"],
  ["01ARZ3NDEKTSV4RRFFQ69G5FAV:1", "3EB0E0A631FFD64AB37D16"],
  ["01ARZ3NDEKTSV4RRFFQ69G5FAV:99999", "3EB095124B33DC4DADE92C"],
  ["01JCR5Z3M0000000000000000A:7", "3EB084A076728B4E953566"],
  ["", "3EB0E3B0C44298FC1C149A"],
  ["שלום:0", "3EB0EA0CFCAD3DC77E3DBD"],
  ["🙂:1", "3EB049FA8CBC7341C36A5A"],
];

for (const [taskId, expected] of VECTORS) {
  test(`the message id of ${JSON.stringify(taskId)} is the one Python derives`, () => {
    assert.equal(whatsappId(taskId), expected);
  });
}
