# role: destroy
# problem: tsp
# expect: ok
# why: raise and catch, else and finally
def destroy(dist, current_tour, steps_since_improvement, rng):
    removed = []
    try:
        if steps_since_improvement > 3:
            raise ValueError("stalled")
        removed.append(current_tour[len(current_tour)])
    except (IndexError, KeyError) as error:
        removed.append(current_tour[0])
        message = str(error)
    except ValueError:
        removed.extend(current_tour[:4])
    except Exception as e:
        raise RuntimeError("unexpected") from e
    else:
        removed.append(current_tour[1])
    finally:
        done = True
    assert done, "finally ran"
    return [c for c in current_tour if c not in removed], removed
