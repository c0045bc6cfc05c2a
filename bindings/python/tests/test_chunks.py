"""Division of work into chunks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock.chunks import Cutter, claim, gaps, kept


def cut(cutter: Cutter, seconds_for_one: float) -> list[tuple[int, int]]:
    """All chunks, each measured before the next is cut."""
    found = []
    while (chunk := cutter.next()) is not None:
        found.append(chunk)
        cutter.measured(chunk, cutter.weight(chunk) * seconds_for_one)
    return found


def test_chunks_grow_to_the_requested_time_and_cover_everything() -> None:
    found = cut(Cutter([(0, 100), (150, 10_000)], seconds=1.0), seconds_for_one=0.001)
    sizes = [end - first for first, end in found]
    # At most eight times the previous one; the rest before a gap is also a chunk.
    assert sizes[:5] == [8, 64, 28, 1000, 1000] and max(sizes) == 1000
    assert sum(sizes) == 100 + 9_850
    assert all(before[1] <= after[0] for before, after in zip(found, found[1:]))


def test_a_slow_run_is_a_chunk_of_its_own() -> None:
    found = cut(Cutter([(0, 20)], seconds=1.0), seconds_for_one=5.0)
    assert found[0] == (0, 8) and all(end - first == 1 for first, end in found[1:])


def test_captures_are_weighted_by_their_bytes() -> None:
    weights = [10] * 8 + [1_000, 5, 5, 5, 0, 2_000, 1, 1]
    found = cut(Cutter([(0, 16)], seconds=1.0, weights=weights), seconds_for_one=0.01)
    assert found[0] == (0, 8)
    # From here on a chunk is a hundred bytes, and a larger capture is its own chunk.
    assert (8, 9) in found and [chunk for chunk in found if chunk[0] == 13][0][1] == 14
    assert [number for chunk in found for number in range(*chunk)] == list(range(16))


def test_gaps_are_ranges_without_a_file(tmp_path: Path) -> None:
    for name in ("000000000000-000000000008", "000000000020-000000000030", "000000000025-000000000040"):
        (tmp_path / f"{name}.parquet").touch()
    (tmp_path / ".000000000008-000000000016.parquet.7.part").touch()
    assert kept(tmp_path) == [(0, 8), (20, 30)]
    assert gaps(kept(tmp_path), 40) == [(8, 20), (30, 40)]
    assert gaps([], 0) == []


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    folder = claim(out, "sweep.json", "this", "sweep")
    assert folder.is_dir() and (out / "sweep.json").read_text() == "this"
    # A call that was killed before it had made the folder of chunks can be resumed.
    folder.rmdir()
    assert claim(out, "sweep.json", "this", "sweep") == folder
    with pytest.raises(ValueError, match="another sweep"):
        claim(out, "sweep.json", "that", "sweep")
    with pytest.raises(ValueError, match="holds no sweep"):
        claim(tmp_path, "sweep.json", "this", "sweep")
