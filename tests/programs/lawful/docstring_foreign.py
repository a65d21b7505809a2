# role: destroy
# problem: tsp
# expect: ok
# why: text in other languages
def destroy(dist, current_tour, steps_since_improvement, rng):
    """Entfernt zufällige Städte. 移除随机节点。 Удаляет случайные узлы. 🧨 x̂ᵢ ≤ 0.35·n"""
    # größer als ein Fünftel: nein — « guillemets » and “quotes”
    size = max(1, len(current_tour) // 5)
    label = "узел → 节点 ñ"
    assert label.endswith("ñ") and len(label) == 11
    return current_tour[:-size], current_tour[-size:]
