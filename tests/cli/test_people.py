"""`suppress`, `people`, `dead-letters`, `webhooks` and `keys`, on a running platform."""

import json

from paceline.cli.exits import Exit

from .conftest import Cli


def test_people_are_suppressed_listed_exported_and_lifted(cli: Cli) -> None:
    assert "2 added" in cli.said("suppress", "add", "+44 7700 900310", "447700900311", "--reason", "asked")
    assert "asked" in cli.out("suppress", "list")
    assert "447700900311" not in cli.out("suppress", "list", "--to", "+44 7700 900310")
    assert cli.json("suppress", "list", "--to", "447700900399")["items"] == []
    assert "SUPPRESSED" in cli.said("send", "447700900310", "Hello", exit_code=Exit.REFUSED)
    exported = cli.out("suppress", "export")
    assert exported.splitlines()[0].startswith("to,")
    assert "suppress list --all --json" in cli.said("suppress", "export", "--json", exit_code=Exit.USAGE)
    assert "447700900310 may be written to" in cli.said("suppress", "remove", "447700900310")
    assert cli.run("suppress", "import", "-", stdin=exported).stderr.startswith("1 added, 1 were there already")
    cli.said("suppress", "remove", "447700900310")
    cli.said("suppress", "remove", "447700900311")
    assert "NOT_FOUND" in cli.said("suppress", "remove", "447700900311", exit_code=Exit.REFUSED)


def test_bad_rows_are_named_and_exit_with_1(cli: Cli) -> None:
    result = cli.run("suppress", "import", "-", stdin="to\n447700900312\nnobody\n")
    assert result.exit_code == Exit.FAILED
    assert "line 3: nobody: INVALID_NUMBER" in result.stderr
    again = cli.run("suppress", "import", "-", "--json", stdin="to\n447700900312\nnobody\n")
    assert (again.exit_code, json.loads(again.stdout)["rejected"][0]["to"]) == (Exit.FAILED, "nobody")
    assert cli.run("suppress", "remove", "447700900312").exit_code == 0


def test_a_person_is_erased_after_a_yes(cli: Cli) -> None:
    message = cli.send("447700900315")
    cli.wait_for("it to be sent", "messages", "show", message, until=lambda m: m["state"] in ("sent", "delivered"))
    assert "--yes" in cli.said("people", "erase", "447700900315", exit_code=Exit.USAGE)
    assert message in cli.out("messages", "find", "447700900315")
    assert "447700900315: 0 messages canceled, " in cli.said("people", "erase", "+44 7700 900315", "--yes")
    assert message not in cli.out("messages", "find", "447700900315")
    assert "INVALID_NUMBER" in cli.said("people", "erase", "nobody", "--yes", exit_code=Exit.REFUSED)


def test_a_webhook_is_made_listed_and_removed(cli: Cli) -> None:
    made = cli.run(
        "webhooks", "create", "https://93.184.216.34/hook", "--event", "message.read", "--description", "CLI"
    )
    assert made.exit_code == 0, made.output
    secret, webhook = made.stdout.strip(), made.stderr.split()[1].rstrip(":")
    assert "message.read" in cli.out("webhooks", "list")
    assert secret not in cli.out("webhooks", "list")
    assert "Nothing was posted there." in cli.run("webhooks", "deliveries", webhook, "--state", "failed").output
    assert "0 failed events again" in cli.said("webhooks", "redrive", webhook)
    assert "--yes" in cli.said("webhooks", "remove", webhook, exit_code=Exit.USAGE)
    assert f"{webhook} is removed" in cli.said("webhooks", "remove", webhook, "--yes")
    assert "404" in cli.said("webhooks", "remove", webhook, "--yes", exit_code=Exit.REFUSED)


def test_a_dead_letter_is_looked_at_and_sent_again(cli: Cli) -> None:
    cli.platform.simulate({"not_on_whatsapp": ["447700900313"]})
    message = cli.send("447700900313")
    cli.wait_for("it to be given up", "dead-letters", "list", until=lambda page: message in str(page))
    assert message in cli.out("dead-letters", "list", "--class", "recipient")
    assert message not in cli.out("dead-letters", "list", "--code", "RATE_LIMIT")
    shown = cli.out("dead-letters", "show", message)
    assert "NOT_ON_WHATSAPP (recipient)" in shown
    (item,) = (one for one in cli.json("dead-letters", "list")["items"] if one["id"] == message)
    assert json.loads(cli.out("dead-letters", "show", message, "--json")) == item
    cli.platform.simulate()
    again = cli.out("dead-letters", "replay", message).strip()
    assert again != message
    assert "ALREADY_REPLAYED" in cli.said("dead-letters", "replay", message, exit_code=Exit.REFUSED)
    assert "no dead letter" in cli.said("dead-letters", "show", f"{message[:-1]}9", exit_code=Exit.REFUSED)
    assert "--yes" in cli.said("dead-letters", "replay-all", exit_code=Exit.USAGE)
    job = message.partition(":")[0]
    assert "0 sent again" in cli.said("dead-letters", "replay-all", "--job", job, "--yes")
    assert "1 sent again" in cli.said("dead-letters", "replay-all", "--job", job, "--again", "--yes")


def test_a_key_is_made_used_and_revoked(cli: Cli) -> None:
    made = cli.run("keys", "create", "--name", "CLI", "--scope", "read", "--expires-days", "1")
    key, key_id = made.stdout.strip(), made.stderr.split()[1]
    assert "read" in cli.out("keys", "self", "--key", key)
    assert "keys self" in cli.said("send", "447700900314", "Hello", "--key", key, exit_code=Exit.REFUSED)
    assert key_id in cli.out("keys", "list")
    assert "is revoked" in cli.said("keys", "revoke", key_id, "--yes")

    def is_refused(_page: object) -> bool:
        return cli.run("keys", "self", "--key", key).exit_code == Exit.REFUSED

    cli.wait_for("the key to be refused", "keys", "list", until=is_refused)
