"""The extra `checks`: Hypothesis draws samples from the strategies of `steinax.checks`."""


def main() -> None:
    import expect
    from hypothesis import given, settings

    import steinax as sx
    from steinax.checks import strategies

    expect.installed()
    seen: list[int] = []

    @settings(max_examples=5, derandomize=True, deadline=None)
    @given(strategies.arrays(shapes=[(2, 20, 1)]))
    def made(draws_and_scores: tuple[object, object]) -> None:
        seen.append(len(sx.Sample(*draws_and_scores).names))  # pyright: ignore[reportArgumentType]

    made()
    assert seen and set(seen) == {1}


if __name__ == "__main__":
    main()
