"""What users declare: files, expressions and the values they become. Pure: nothing here touches the lake."""
