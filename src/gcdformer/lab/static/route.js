// The state of the page is its address: #/run/NAME?epoch=12&k=20. Every view reads it from here and writes it here.

export function read() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parts = path
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { view: parts[0] ?? "", id: parts[1] ?? null, params: new URLSearchParams(query ?? "") };
}

export function link(view, id = null, params = {}) {
  const query = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== ""),
  );
  const path = [view, id]
    .filter((part) => part !== null && part !== "")
    .map(encodeURIComponent)
    .join("/");
  return `#/${path}${query.size ? `?${query}` : ""}`;
}

// Change some parameters without leaving the view and without filling the history.
export function update(changes) {
  const { view, id, params } = read();
  const next = link(view, id, { ...Object.fromEntries(params), ...changes });
  if (next !== location.hash) history.replaceState(null, "", next);
}

export function integer(params, name) {
  const text = params.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

// Several ids in one parameter; a name may hold a comma.
export const joinIds = (ids) => [...ids].map((id) => id.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
export const splitIds = (text) =>
  (text ?? "")
    .split(",")
    .filter(Boolean)
    .map((id) => id.replaceAll("%2C", ",").replaceAll("%25", "%"));
