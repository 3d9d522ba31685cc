// The arithmetic of the layers, on rows in flat Float32Arrays. Sums are in double precision. Knows no names and no models.
// Shapes: T rows, S keys, H heads, D the width, E = D / H.

// out[t] = W x[t] + b for `rows` rows from row `start` of `out` and from row 0 of `x`; W is (nout, nin). Four outputs at a
// time, so that a value of x is loaded once for four products.
export function linear(out, start, x, map, rows) {
  const { weight, bias, nin, nout } = map;
  const whole = nout - (nout % 4);
  for (let o = 0; o < whole; o += 4) {
    const w0 = o * nin;
    const w1 = w0 + nin;
    const w2 = w1 + nin;
    const w3 = w2 + nin;
    for (let t = 0; t < rows; t += 1) {
      const from = t * nin;
      let s0 = bias[o];
      let s1 = bias[o + 1];
      let s2 = bias[o + 2];
      let s3 = bias[o + 3];
      for (let i = 0; i < nin; i += 1) {
        const value = x[from + i];
        s0 += value * weight[w0 + i];
        s1 += value * weight[w1 + i];
        s2 += value * weight[w2 + i];
        s3 += value * weight[w3 + i];
      }
      const to = (start + t) * nout + o;
      out[to] = s0;
      out[to + 1] = s1;
      out[to + 2] = s2;
      out[to + 3] = s3;
    }
  }
  for (let o = whole; o < nout; o += 1) {
    for (let t = 0; t < rows; t += 1) {
      let sum = bias[o];
      for (let i = 0; i < nin; i += 1) sum += x[t * nin + i] * weight[o * nin + i];
      out[(start + t) * nout + o] = sum;
    }
  }
}

export function relu(x, count) {
  for (let i = 0; i < count; i += 1) if (x[i] < 0) x[i] = 0;
}

// x[t] = (x[t] - mean) / sqrt(variance + epsilon) * weight + bias
export function normalise(x, rows, { weight, bias, epsilon }) {
  const dim = weight.length;
  for (let t = 0; t < rows; t += 1) {
    const at = t * dim;
    let mean = 0;
    for (let i = 0; i < dim; i += 1) mean += x[at + i];
    mean /= dim;
    let variance = 0;
    for (let i = 0; i < dim; i += 1) variance += (x[at + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / dim + epsilon);
    for (let i = 0; i < dim; i += 1) x[at + i] = (x[at + i] - mean) * scale * weight[i] + bias[i];
  }
}

// out = norm(x + added), row by row; `out` may be `x`.
export function addAndNormalise(out, x, added, rows, norm) {
  const count = rows * norm.weight.length;
  for (let i = 0; i < count; i += 1) out[i] = x[i] + added[i];
  normalise(out, rows, norm);
}

// pattern (H, T, S) = softmax(q k / sqrt(E)). Queries and keys are {values, at, stride, row}: head h of row t begins at
// (row + t) * stride + at + h * E. With `causal`, query t sees the keys up to number S - T + t.
export function attentionPattern(pattern, queries, keys, { rows, count, heads, width, causal }) {
  const scale = width ** -0.5;
  for (let h = 0; h < heads; h += 1) {
    for (let t = 0; t < rows; t += 1) {
      const to = (h * rows + t) * count;
      const q = (queries.row + t) * queries.stride + queries.at + h * width;
      const seen = causal ? count - rows + t + 1 : count;
      let top = -Infinity;
      for (let s = 0; s < seen; s += 1) {
        const k = s * keys.stride + keys.at + h * width;
        let score = 0;
        for (let i = 0; i < width; i += 1) score += queries.values[q + i] * keys.values[k + i];
        score *= scale;
        pattern[to + s] = score;
        if (score > top) top = score;
      }
      let total = 0;
      for (let s = 0; s < seen; s += 1) {
        pattern[to + s] = Math.exp(pattern[to + s] - top);
        total += pattern[to + s];
      }
      for (let s = 0; s < seen; s += 1) pattern[to + s] /= total;
      pattern.fill(0, to + seen, to + count);
    }
  }
}

// out (T, D): the values of each head, weighted by its pattern, side by side.
export function mixValues(out, pattern, values, { rows, count, heads, width }) {
  out.fill(0, 0, rows * heads * width);
  for (let h = 0; h < heads; h += 1) {
    for (let t = 0; t < rows; t += 1) {
      const to = (t * heads + h) * width;
      for (let s = 0; s < count; s += 1) {
        const share = pattern[(h * rows + t) * count + s];
        const from = s * values.stride + values.at + h * width;
        for (let i = 0; i < width; i += 1) out[to + i] += share * values.values[from + i];
      }
    }
  }
}

// ln of the sum of exp over `count` values from `at`.
export function logSumExp(values, at, count) {
  let top = -Infinity;
  for (let i = at; i < at + count; i += 1) if (values[i] > top) top = values[i];
  let total = 0;
  for (let i = at; i < at + count; i += 1) total += Math.exp(values[i] - top);
  return top + Math.log(total);
}
