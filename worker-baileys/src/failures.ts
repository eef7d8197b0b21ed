/**
 * What can go wrong with a send, in the words of `paceline.domain.failures`; the orchestrator decides from the code
 * whether a task is tried again. Here also stands what each nack of WhatsApp's server becomes.
 */

export const RATE_LIMIT = "RATE_LIMIT";
export const NOT_ON_WHATSAPP = "NOT_ON_WHATSAPP";
export const INVALID_RECIPIENT = "INVALID_RECIPIENT";
export const RESTRICTED_463 = "RESTRICTED_463";
export const NO_ACK = "NO_ACK";
export const CONNECTION_LOST = "CONNECTION_LOST";
export const SEND_FAILED = "SEND_FAILED";
export const UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME";
export const MEDIA_UNAVAILABLE = "MEDIA_UNAVAILABLE";

export interface SendError {
  readonly code: string;
  readonly message: string;
}

/** The server's nack for a stanza it calls invalid: most often our picture of the contact's devices is stale. */
export const SMAX_INVALID = "479";
export const RESTRICTED = "463";

const NACKS: Readonly<Record<string, SendError>> = {
  [RESTRICTED]: { code: RESTRICTED_463, message: "463: starting new chats is restricted" },
  "429": { code: RATE_LIMIT, message: "429: too many messages" },
  [SMAX_INVALID]: { code: SEND_FAILED, message: "479: the contact's devices changed; asked for anew" },
};

/**
 * What a nack means. `before` is what the journal holds of the last try: a second 479 says that asking for the devices
 * anew did not help, and a third try would not either.
 */
export function refusalOf(nack: string, before: SendError | null): SendError {
  if (nack === SMAX_INVALID && before?.message.startsWith(SMAX_INVALID)) {
    return { code: INVALID_RECIPIENT, message: "479 again: the server takes no message for this recipient" };
  }
  return NACKS[nack] ?? { code: SEND_FAILED, message: `${nack}: the server refused the message` };
}
