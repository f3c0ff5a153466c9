"""Codecs once more, number by number in float64 and with scales that are not rounded: what tests compare with."""

import math


def length(x):
    return math.sqrt(math.fsum(number * number for number in x))


def squared_error(x, y):
    return math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def buckets(x, size):
    return [x[first : first + size] for first in range(0, len(x), size)]


def scale_of(x, norm):
    return max(map(abs, x)) if norm == "max" else length(x)


def stochastic_levels(x, uniforms, s, norm, size):
    levels = []
    for part, drawn in zip(buckets(x, size), buckets(uniforms, size), strict=True):
        scale = scale_of(part, norm)
        for number, uniform in zip(part, drawn, strict=True):
            level = math.floor(s * number / scale + uniform) if scale else 0
            levels.append(max(-s, min(s, level)))
    return levels


def level_values(x, levels, s, norm, size):
    values = []
    for part, own in zip(buckets(x, size), buckets(levels, size), strict=True):
        values += [level * scale_of(part, norm) / s for level in own]
    return values


def level_variance(x, s, norm, size):
    """Mean squared error of stochastic levels."""
    terms = []
    for part in buckets(x, size):
        scale = scale_of(part, norm)
        fractions = [(s * number / scale) % 1.0 for number in part] if scale else []
        terms += [(scale / s) ** 2 * fraction * (1 - fraction) for fraction in fractions]
    return math.fsum(terms)


def natural(x, uniforms):
    values = []
    for number, uniform in zip(x, uniforms, strict=True):
        if number == 0:
            values.append(0.0)
            continue
        mantissa, exponent = math.frexp(abs(number))
        fraction = 2 * mantissa - 1
        goes_up = fraction + math.floor(2**23 * uniform) / 2**23 >= 1
        values.append(math.copysign(2.0 ** (exponent - 1 + goes_up), number))
    return values


def natural_variance(x):
    terms = []
    for number in x:
        mantissa, exponent = math.frexp(abs(number))
        fraction = 2 * mantissa - 1
        terms.append(4.0 ** (exponent - 1) * fraction * (1 - fraction) if number else 0.0)
    return math.fsum(terms)


def sign(v):
    scale = math.fsum(map(abs, v)) / len(v)
    return [-scale if number < 0 else scale for number in v]


def top(v, k):
    """Places of the k largest |numbers|, of equal ones the lower."""
    return sorted(sorted(range(len(v)), key=lambda place: (-abs(v[place]), place))[:k])


def topk(v, k):
    places = set(top(v, k))
    return [number if place in places else 0.0 for place, number in enumerate(v)]


def one_sided(v, k):
    positive, negative = ({place: v[place] for place in top(v, k) if factor * v[place] > 0} for factor in (1, -1))
    means = [math.fsum(numbers.values()) / len(numbers) if numbers else 0.0 for numbers in (positive, negative)]
    places, mean = (positive, means[0]) if means[0] >= -means[1] else (negative, means[1])
    return [mean if place in places else 0.0 for place in range(len(v))]


def stc(v, k):
    places = top(v, k)
    scale = math.fsum(abs(v[place]) for place in places) / k
    values = [0.0] * len(v)
    for place in places:
        values[place] = -scale if v[place] < 0 else scale
    return values


def randk(v, uniforms, k, factor):
    places = set(sorted(range(len(v)), key=lambda place: (uniforms[place], place))[:k])
    return [number * factor if place in places else 0.0 for place, number in enumerate(v)]
