"""The benchmarks still fit the code: the parts that use Sash's internals run at small sizes."""

import itertools

from rich.console import Console

from benchmarks._context_building import measure_building
from benchmarks._context_cache import measure_cache
from benchmarks._context_contestants import list_tool_schemas, move_time_to_start, play_sash
from benchmarks._conversations import generate_turns
from benchmarks._durable import Sash
from benchmarks._home_prompts import SASH, compare
from benchmarks._home_sentences import SENTENCES, measure_sentences
from benchmarks._prompt_cache import TokenCosts
from benchmarks._simulated_model import play_dialogue


async def test_contexts_are_built_and_recall_works():
    rows = await measure_building((100, 400), 1, Console(quiet=True))
    assert len(rows) == 6 and all(row.value > 0 for row in rows)


async def test_a_conversation_with_sash_is_measured():
    conversation = list(itertools.islice(generate_turns(1), 30))
    costs = TokenCosts(list_tool_schemas(conversation))
    prompts = await play_sash(conversation, 1_000, costs)
    results = [measure_cache(each, 1_000, costs) for each in (prompts, move_time_to_start(prompts))]
    assert results[0].cached > results[1].cached
    assert results[0].broken == 0


async def test_the_dialogue_with_a_home_has_no_wrong_answers():
    dialogue = await play_dialogue(50)
    assert (dialogue.wrong_answers, dialogue.incomplete_answers) == (0, 0)
    assert compare(dialogue)[SASH].calls == sum(len(turn.prompts) for turn in dialogue.turns)


async def test_sentences_are_understood_as_the_benchmark_expects():
    times = await measure_sentences((50,), 1)
    assert {(case, 50) for case in SENTENCES} <= times.keys()


async def test_a_durable_turn_completes(tmp_path):
    sash = Sash("sqlite", tmp_path)
    await sash.open()
    await sash.turn(await sash.session())
    await sash.close()
