// The colours that the address asks for (`theme=dark`), or those chosen on an earlier visit, set before anything is painted. A
// classic script: modules run too late.

{
  const choose = () => {
    const asked = new URLSearchParams(location.hash.split("?")[1]).get("theme");
    const chosen = asked ?? localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  };
  choose();
  window.addEventListener("hashchange", () => {
    choose();
    window.dispatchEvent(new Event("theme"));
  });
}
