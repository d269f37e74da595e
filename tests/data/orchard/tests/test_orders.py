from orchard.orders import Order


def order():
    return Order().add("pears", "2 kg", 350).add("kale", "500 g", 299).add("pears", "250 g", 350)


def test_weight():
    assert order().weight().grams == 2750


def test_price():
    assert order().cents() == 937
    assert order().cents(discount=10) == 843


def test_merged():
    assert [(crop, weight.grams) for crop, weight, _ in order().merged().lines] == [
        ("kale", 500),
        ("pears", 2250),
    ]


def test_bill():
    assert order().bill().splitlines()[0] == "pears          2 kg"
    assert order().bill().splitlines()[-1] == "sum            9.37"


def test_an_empty_order():
    assert Order().cents() == 0
    assert Order().weight().grams == 0
