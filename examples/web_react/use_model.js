// The model of a bundle while a component is shown: { model, error, progress }.
import { useEffect, useState } from "react";

const LOADING = { model: null, error: null, progress: null };

export function useModel(load) {
  const [state, setState] = useState(LOADING);
  useEffect(() => {
    let shown = true;
    const show = (change) => shown && setState((before) => ({ ...before, ...change }));
    const loading = load({ onProgress: (progress) => show({ progress }) });
    loading.then((model) => show({ model })).catch((error) => show({ error }));
    return () => {
      // StrictMode mounts twice in development: the first model is closed as soon as it is there.
      shown = false;
      setState(LOADING);
      loading.then((model) => model.dispose(), () => {});
    };
  }, [load]);
  return state;
}
