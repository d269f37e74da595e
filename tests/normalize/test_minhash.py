"""Signatures estimate how much two texts share, and the index finds those that share enough."""

import random

from tracemill.normalize.operators.minhash import NearIndex, minhash_signature, minhash_similarity


def words(coin: random.Random, count: int = 400) -> list[bytes]:
    return [b"%d" % coin.randrange(1000) for _ in range(count)]


def changed(text: list[bytes], places: int, coin: random.Random) -> list[bytes]:
    other = list(text)
    for at in coin.sample(range(len(text)), places):
        other[at] = b"changed"
    return other


def jaccard(first: list[bytes], second: list[bytes]) -> float:
    one, two = ({tuple(text[at : at + 5]) for at in range(len(text) - 4)} for text in (first, second))
    return len(one & two) / len(one | two)


def test_the_estimate_is_near_the_jaccard_index() -> None:
    coin = random.Random(1)
    misses = []
    for places in (0, 2, 5, 10, 20, 40) * 100:
        text = words(coin)
        other = changed(text, places, coin)
        misses.append(
            minhash_similarity(minhash_signature(text), minhash_signature(other)) - jaccard(text, other)
        )
    assert max(map(abs, misses)) < 0.15
    assert abs(sum(misses) / len(misses)) < 0.005


def test_the_index_finds_what_is_alike_and_nothing_else() -> None:
    coin = random.Random(2)
    index = NearIndex[int](0.8)
    texts = [words(coin) for _ in range(200)]
    for number, text in enumerate(texts):
        index.add(number, minhash_signature(text))
    near = [index.near(minhash_signature(changed(text, 3, coin))) for text in texts]
    assert near == [[number] for number in range(200)]
    assert [index.near(minhash_signature(changed(text, 60, coin))) for text in texts] == [[]] * 200


def test_seeds_keep_signatures_apart_and_short_texts_have_one() -> None:
    text = [b"a"] * 3
    assert minhash_similarity(minhash_signature(text), minhash_signature(text)) == 1.0
    assert minhash_similarity(minhash_signature(text), minhash_signature(text, seed=7)) < 0.1
    assert minhash_similarity(minhash_signature([]), minhash_signature([b"b"])) < 0.1
