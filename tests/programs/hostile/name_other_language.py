# role: destroy
# problem: cvrp
# expect: any-failure
# why: another language
fn destroy(dist: &[Vec<f64>]) -> Vec<usize> { vec![] }
