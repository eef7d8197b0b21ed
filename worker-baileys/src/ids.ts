/**
 * Ids: the WhatsApp message id follows from the task id, so a task that is delivered to a worker twice can only ever go
 * out under one id. The same derivation as `paceline.domain.ids`, held to it by shared test vectors.
 */
import { createHash } from "node:crypto";

/** In the shape WhatsApp's own web client uses. */
export function whatsappId(taskId: string): string {
  return "3EB0" + createHash("sha256").update(taskId, "utf8").digest("hex").slice(0, 18).toUpperCase();
}
