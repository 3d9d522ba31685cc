// The colours chosen on an earlier visit, set before anything is painted. A classic script: modules run too late.

{
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
