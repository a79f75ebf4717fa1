"""`sash resume`: go on with a turn that was interrupted, or that waits for a yes."""

import typer

from sash.cli.options import LOCAL, Config, Data, Json, Owner, Place, Store, TurnId


def resume(
    continuation: TurnId,
    as_json: Json = False,
    data: Data = None,
    store: Store = None,
    config: Config = None,
    owner: Owner = LOCAL,
) -> None:
    """Go on with a turn from the first step that is missing; where it needs a yes, ask for it."""
    loaded = Place(data, store, config, owner).load()

    from sash.app.access import Caller
    from sash.cli.answer import report
    from sash.cli.beside import Beside
    from sash.cli.console import make_console
    from sash.cli.house import wait_for_house
    from sash.cli.lines import Lines, ask_for_yes
    from sash.cli.logs import quiet
    from sash.cli.opening import talking
    from sash.cli.screen import Screen
    from sash.cli.turns import Turns

    # What happens is shown on standard error: the answer is for who reads the output.
    err, caller = make_console(stderr=True), Caller(owner)
    lines = Lines(err)
    with Beside() as beside, beside.within(talking(quiet(loaded))) as desk:
        beside.call(wait_for_house(desk))
        turns = Turns(
            beside, desk, caller, Screen(err, texts=False), lambda call: ask_for_yes(lines, err, call)
        )
        turn = turns.stand(continuation)
        turns.start_behind(turn.session_id, continuation)
        if turn.status == "awaiting_approval":
            turn = turns.take_up(turn)
        else:
            beside.call(desk.resume(caller, continuation))
            turn = turns.follow(turn.session_id, continuation)
    raise typer.Exit(report(turn, as_json=as_json))
