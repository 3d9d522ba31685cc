// Live figures: where a figure comes near, a frame shows the same figure of the lab's page, in the colours of this site. The
// still stays until the frame has drawn, and for good if it never does.

const frames = new Map();
const theme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");
const coloured = (address) => `${address.replace(/&theme=\w+/, "")}&theme=${theme()}`;

function open(figure) {
  const frame = document.createElement("iframe");
  frame.title = figure.querySelector("figcaption").textContent.trim();
  frame.src = coloured(figure.dataset.src);
  frames.set(frame, figure);
  figure.prepend(frame);
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    open(target);
  }
}, { rootMargin: "400px" });
document.querySelectorAll("figure.live").forEach((figure) => near.observe(figure));

// A frame says how high its figure is, and says it again whenever that changes.
window.addEventListener("message", ({ source, data }) => {
  const height = data?.gcdformer?.height;
  for (const [frame, figure] of frames) {
    if (frame.contentWindow !== source || !Number.isFinite(height)) continue;
    figure.classList.add("is-live");
    frame.style.height = `${height + frame.offsetHeight - frame.clientHeight}px`;
  }
});

// The site's button for light and dark: the figures keep their state, except from the disk, where a frame's is out of reach.
new MutationObserver(() => {
  for (const frame of frames.keys()) {
    let address = frame.src;
    try {
      address = frame.contentWindow.location.href;
    } catch {
      // another origin
    }
    if (!address.includes(`theme=${theme()}`)) frame.contentWindow.location.replace(coloured(address));
  }
}).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
